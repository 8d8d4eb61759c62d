"""The values: what is refused and with which words, and that documentation, schema and templates agree."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller import __version__
from controller.settings import parse_file
from hack.chart_schema import SCHEMA, comments, rendered
from tests.chart.helm import CHART, SCENARIOS, Rendered, refusal, render, run, scenario, template, values

TEMPLATES = "\n".join(
    path.read_text(encoding="utf-8") for path in CHART.rglob("templates/**/*") if path.is_file()
)
DEFAULTS = (CHART / "values.yaml").read_text(encoding="utf-8")
FREE = {"resources", "labels", "config", "global"}  # handed on whole


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_linter_finds_nothing(path: Path) -> None:
    code, said = run("lint", "--strict", str(CHART), "--values", str(path))
    assert code == 0, said
    assert not re.search("WARNING|ERROR", said), said


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_settings_of_every_scenario_are_ones_that_the_program_takes(path: Path) -> None:
    config = yaml.safe_load(scenario(path).one("ConfigMap", SETTINGS[path.stem])["data"]["switchboard.yaml"])
    mistakes: list[str] = []
    assert parse_file(config, mistakes) is not None, mistakes


SETTINGS = {path.stem: "-switchboard" for path in SCENARIOS} | {"restricted-values": "boards"}


def test_the_least_values_are_enough() -> None:
    code, said = template(values())
    assert code == 0, said


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"imag": {}}, "'imag'"),
        ({"controller": {"replica": 2}}, "'replica'"),
        ({"config": {"pols": []}}, "'pols'"),
        ({"config": {"pools": [{"name": "a", "labels": ["b"], "image": "c", "imge": "d"}]}}, "'imge'"),
        ({"config": {"timings": {"pollInterval": 15}}}, "/config/timings/pollInterval"),
        ({"controller": {"replicas": "two"}}, "/controller/replicas"),
        ({"mode": "both"}, "/mode"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"trialDatabase": {"password": "with spaces"}}, "/trialDatabase/password"),
    ],
)
def test_a_wrong_value_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    assert named in refusal(wrong)


def test_a_missing_image_is_refused_with_the_command_to_run() -> None:
    said = refusal({"image": {"repository": ""}})
    assert "/image/repository" in said
    assert "make image IMAGE=REPOSITORY:TAG, then --set image.repository=REPOSITORY" in said


def test_missing_settings_are_refused_by_name() -> None:
    said = template("image: {repository: x}")[1]
    assert "missing properties 'github', 'pools'" in said


def test_all_that_is_missing_between_values_is_said_at_once_with_what_to_do() -> None:
    said = refusal(
        {
            "secrets": {"databaseUrl": "", "webhookSecret": ""},
            "appKeys": {"files": {"user.pem": None}},
            "ingress": {"enabled": True},
        }
    )
    for flag in (
        "--set secrets.databaseUrl=",
        "--set secrets.webhookSecret=",
        "--set-file appKeys.files.",
        "--set ingress.host=",
    ):
        assert flag in said


def test_a_key_file_that_is_not_mounted_is_noticed() -> None:
    files = {"appKeys": {"files": {"user.pem": None, "other.pem": "a key"}}}
    assert "config.github.apps.User.privateKeyFile: appKeys.files has no user.pem" in refusal(files)


@pytest.mark.parametrize("keys", [{}, {"existingSecret": "keys", "files": None}], ids=["files", "secret"])
def test_a_key_is_looked_for_where_keys_are_mounted(keys: dict[str, Any]) -> None:
    elsewhere = {"config": {"github": {"apps": {"User": {"privateKeyFile": "/etc/switchboard/user.pem"}}}}}
    said = refusal(elsewhere, {"appKeys": keys})
    assert "config.github.apps.User.privateKeyFile: nothing is mounted at /etc/switchboard/user.pem" in said
    mount = {
        "controller": {"extraVolumeMounts": [{"name": "vault", "mountPath": "/etc/switchboard/user.pem"}]}
    }
    render(elsewhere, {"appKeys": keys}, mount)


def test_a_trial_database_needs_a_password_that_stays() -> None:
    bare = {**yaml.safe_load(values()), "trialDatabase": {"enabled": True, "password": None}}
    for said in (refusal({"trialDatabase": {"enabled": True}}), template(yaml.safe_dump(bare))[1]):
        assert "trialDatabase.password: missing" in said


@pytest.mark.parametrize("enabled", [True, False])
def test_an_umbrella_chart_may_hold_it_and_switch_it_off(tmp_path: Path, enabled: bool) -> None:
    shutil.copytree(CHART, tmp_path / "charts" / "switchboard")
    dependency = {"name": "switchboard", "version": __version__, "condition": "switchboard.enabled"}
    umbrella = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(umbrella), encoding="utf-8")
    ours = yaml.safe_load(values({"enabled": enabled}))
    given = yaml.safe_dump({"global": {"anything": {"at": "all"}}, "switchboard": ours})
    code, said = run("template", "platform", str(tmp_path), "--values", "-", given=given)
    assert code == 0, said
    assert ("kind: Deployment" in said) is enabled


def leaves(tree: Any, place: str = "") -> set[str]:
    """The paths of the values, as deep as this chart looks into them."""
    name = place.rpartition(".")[2]
    if not isinstance(tree, dict) or not tree or name in FREE:
        return {place.removeprefix(".")}
    return {path for key, value in tree.items() for path in leaves(value, f"{place}.{key}")}


def value_at(path: str) -> Any:
    """The default of a value."""
    found = yaml.safe_load(DEFAULTS)
    for name in path.split("."):
        found = found[name]
    return found


EMPTY = sorted(path for path in leaves(yaml.safe_load(DEFAULTS)) if value_at(path) in ({}, []))
EVERYTHING: dict[str, Any] = {
    "metrics": {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "grafanaDashboard")},
    "ingress": {"enabled": True, "host": "example.org"},
    "appKeys": {"existingSecret": "keys"},
}


@pytest.mark.parametrize("path", EMPTY)
def test_a_key_with_nothing_behind_it_is_as_good_as_none(path: str) -> None:
    """As in a file in which only comments are left below `affinity:`; helm then takes the default away too."""
    given = values(EVERYTHING)
    bare = yaml.safe_load(given)
    section, _, name = path.rpartition(".")
    place = bare
    for part in filter(None, section.split(".")):
        place = place.setdefault(part, {})
    place[name] = None
    assert Rendered(yaml.safe_dump(bare)).objects == Rendered(given).objects


# Sections that are handed around whole, so that no template names these values by their path.
HANDED = ("controller", "webhook")
MARKED: dict[str, Any] = {
    "affinity": {"marker": {}},
    "nodeSelector": {"marker": ""},
    "tolerations": [{"key": "marker"}],
    "priorityClassName": "marker",
}


@pytest.mark.parametrize("section", HANDED)
@pytest.mark.parametrize("name", MARKED)
def test_what_a_component_is_given_reaches_its_pods_and_not_the_others(section: str, name: str) -> None:
    rendered = render({section: {name: MARKED[name]}})
    marked = [each for each in HANDED if "marker" in yaml.safe_dump(rendered.pod(each)["spec"])]
    assert marked == [section]


def test_no_value_is_unused() -> None:
    tried = {f"{section}.{name}" for section in HANDED for name in MARKED}
    wanted = leaves(yaml.safe_load(DEFAULTS)) - {"enabled", "global"} - tried
    named = {path for path in wanted if re.search(rf"\.Values\.{re.escape(path)}\b", TEMPLATES)}
    assert wanted - named == set()


def test_no_template_uses_a_value_that_is_not_there() -> None:
    named = set(re.findall(r"\.Values\.([\w.]+\w)", TEMPLATES))
    there = leaves(yaml.safe_load(DEFAULTS))
    sections = {path.rsplit(".", depth)[0] for path in there for depth in range(4)}
    assert named - sections - there == set()


def test_no_value_is_undocumented() -> None:
    said = comments(DEFAULTS)
    assert [path for path in leaves(yaml.safe_load(DEFAULTS)) if not said[path]] == []


def test_the_schema_is_the_one_of_these_values_and_settings() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == rendered(), "run: make chart-schema"
