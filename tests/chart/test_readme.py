"""What the README tells people to type is about objects, values and permissions that there are."""

import json
import re
import textwrap

import yaml

from tests.chart.helm import CHART, ROOT, Rendered, run

README = (ROOT / "README.md").read_text(encoding="utf-8")
MANIFESTS = ROOT / "deploy" / "github-app"


def example() -> str:
    """The values file of the installation."""
    block = README.partition("with a `values.yaml` such as\n\n")[2]
    return textwrap.dedent(block.partition("\n\n`charts/")[0])


def test_the_values_of_the_installation_are_accepted() -> None:
    Rendered(example())


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
        assert manifest["hook_attributes"]["url"].endswith("/webhook")
