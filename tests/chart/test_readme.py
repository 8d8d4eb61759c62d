"""What the README tells people to type is about objects, values and permissions that there are."""

import json
import re
import shlex
import textwrap

import yaml

from controller.gateways.kubernetes.pod import instance_labels
from controller.settings import parse_file
from tests.chart.helm import CHART, ROOT, Rendered, run

README = (ROOT / "README.md").read_text(encoding="utf-8")
MANIFESTS = ROOT / "deploy" / "github-app"


def example() -> str:
    """The values file of the installation."""
    block = README.partition("with a `values.yaml` such as\n\n")[2]
    return textwrap.dedent(block.partition("\n\n`charts/")[0])


def test_the_values_of_the_installation_are_accepted() -> None:
    Rendered(example())


def test_the_command_for_one_board_is_about_values_that_there_are() -> None:
    block = README.partition("**One board on k3s**")[2].partition("\n\n**")[0]
    (line,) = re.findall(r"^    helm upgrade --install ((?:.*\\\n)*.*)$", block, re.MULTILINE)
    given = re.sub(r'"\$\(openssl rand .*?\)"', "0123abcd", line).replace("\\\n", " ")
    name, chart, *flags = shlex.split(given.replace("charts/switchboard", str(CHART)))
    code, text = run("template", name, chart, *flags, "--kube-version", "1.36.0")
    assert code == 0, text
    (settings,) = [
        yaml.safe_load(each["data"]["switchboard.yaml"])
        for each in yaml.safe_load_all(text)
        if each and each["kind"] == "ConfigMap" and each["metadata"]["name"] == name
    ]
    mistakes: list[str] = []
    assert parse_file(settings, mistakes) is not None, mistakes
    (pool,) = settings["pools"]
    assert pool["image"] == "registry.example/runner:1"
    assert f"riseproject.dev/board={pool['name']}" in block


def test_boards_are_labelled_before_anything_is_placed_which_no_label_moves() -> None:
    steps = README.partition("## Deploy with Helm")[2]
    label, install = "`kubectl label node NODE riseproject.dev/board=", "helm upgrade --install switchboard"
    assert steps.index(label) < steps.index(install)


def test_hooks_are_never_applied() -> None:
    piped = re.findall(r"helm template[^`]*kubectl apply[^`]*", README)
    assert piped
    assert all("--no-hooks" in command for command in piped)


def test_what_is_left_in_a_namespace_that_is_kept_is_deleted_by_labels_that_it_alone_has() -> None:
    mistakes: list[str] = []
    ours, beside = (
        parse_file({**yaml.safe_load(example())["config"], "environment": environment}, mistakes)
        for environment in ("prod", "staging")
    )
    assert ours is not None, mistakes
    assert beside is not None, mistakes
    selected = selector("delete pods,secrets")
    assert selected.items() <= instance_labels(ours.instance).items()  # of pods and of their Secrets
    assert not selected.items() <= instance_labels(beside.instance).items()
    assert beside.instance == f"{ours.instance}-staging"


def test_the_doctors_pod_that_is_left_is_deleted_by_labels_that_it_alone_has() -> None:
    selected, release = selector("delete pods"), Rendered(example())
    pods = {name: release.pod(name)["metadata"]["labels"] for name in (*release.components(), "doctor")}
    for labels in pods.values():
        labels["app.kubernetes.io/instance"] = "switchboard"  # here it is rendered by another name
    assert [name for name, labels in pods.items() if selected.items() <= labels.items()] == ["doctor"]


def selector(command: str) -> dict[str, str]:
    """The labels that a command of the README asks for."""
    (given,) = re.findall(rf"\b{command} -l ([^`]+)`", README.replace("\n", " "))
    return dict(each.split("=") for each in given.split(","))


def test_the_objects_in_commands_are_those_of_the_release() -> None:
    where = ["--namespace", "switchboard", "--kube-version", "1.36.0", "--values", "-"]
    code, text = run("template", "switchboard", str(CHART), *where, given=example())
    assert code == 0, text
    there = {
        f"{each['kind'].lower()}/{each['metadata']['name']}" for each in yaml.safe_load_all(text) if each
    }
    named = set(re.findall(r"\b((?:deployment|service)/[a-z-]+)", README))
    assert named
    assert named <= there


def test_every_value_that_is_named_exists() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    section = README.partition("## Deploy with Helm")[2].partition("## Architecture")[0]
    tops = "|".join(key for key in values if key not in ("config", "webhook"))
    for path in re.findall(rf"`((?:{tops})\.[A-Za-z.]+)", section):
        found = values
        for part in path.rstrip(".").split("."):
            assert part in found, path
            found = found[part]


def test_the_secrets_that_the_page_writes_into_the_checkout_are_kept_out_of_commits() -> None:
    written = re.findall(r'open\(\\"" \+ asked.kind \+ "(\.[\w.-]+)', (MANIFESTS / "create.html").read_text())
    assert {".pem", ".webhook-secret"} == set(written)
    assert {f"*{each}" for each in written} <= set((ROOT / ".gitignore").read_text().splitlines())


def test_the_manifests_ask_for_what_the_table_says() -> None:
    levels = {"read and write": "write", "read": "read", "–": None}
    names = {
        "Organization → Self-hosted runners": "organization_self_hosted_runners",
        "Repository → Administration": "administration",
        "Repository → Actions": "actions",
        "Repository → Metadata": "metadata",
    }
    table = re.findall(r"^\| ((?:Organization|Repository) → .+?) \| (.+?) \| (.+?) \|$", README, re.MULTILINE)
    assert {row[0] for row in table} == names.keys()
    for column, kind in ((1, "organization"), (2, "user")):
        wanted = {
            names[row[0]]: levels[(row[1] if row[column] == "the same" else row[column]).partition(";")[0]]
            for row in table
        }
        manifest = json.loads((MANIFESTS / f"{kind}.json").read_text(encoding="utf-8"))
        assert manifest["default_permissions"] == {k: v for k, v in wanted.items() if v}
        assert manifest["default_events"] == ["workflow_job"]
        assert manifest["public"] is False  # or anybody might install it, and have jobs run on the boards
        assert manifest["hook_attributes"]["url"].endswith("/webhook")
