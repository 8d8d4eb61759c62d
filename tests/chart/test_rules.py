"""The alerts and the dashboard: about metrics that there are, and evaluated by Prometheus' own evaluator."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.cli import _parser
from controller.domain.reasons import HARMLESS
from controller.telemetry.metrics import Metrics
from hack.cluster.programs import program
from tests.chart.helm import NAMESPACE, ROOT, render

RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "switchboard.json"
ALERTS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
NAME = re.compile(r"switchboard_[a-z_]+")


def exposed() -> set[str]:
    """The names that a scrape may hold."""
    names: set[str] = set()
    for value in vars(Metrics()).values():
        if not hasattr(value, "describe") or not hasattr(value, "_labelnames"):
            continue
        (family,) = value.describe()
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        names |= {f"{family.name}{suffix}" for suffix in suffixes}
    return names


def panels() -> list[dict[str, Any]]:
    content = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [panel for panel in content["panels"] if panel["type"] != "row"]


def test_every_metric_of_an_alert_is_there() -> None:
    for alert in ALERTS:
        named = set(NAME.findall(alert["expr"]))
        assert named, alert["alert"]
        assert named <= exposed(), alert["alert"]


def test_every_metric_of_the_dashboard_is_there_and_none_is_left_out() -> None:
    named = {name for panel in panels() for each in panel["targets"] for name in NAME.findall(each["expr"])}
    assert named <= exposed()
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in exposed()}
    assert families == {re.sub("_(bucket|sum|count)$", "", name) for name in named}


def test_every_panel_says_what_it_shows_and_seconds_are_shown_as_such() -> None:
    for panel in panels():
        assert panel["description"], panel["title"]
        in_seconds = all("_seconds" in each["expr"] for each in panel["targets"])
        assert (panel["fieldConfig"]["defaults"]["unit"] == "s") is in_seconds, panel["title"]
    assert len({panel["id"] for panel in panels()}) == len(panels())


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_ends_with_the_page_and_the_command_that_help(alert: dict[str, Any]) -> None:
    text = alert["annotations"]["description"]
    found = re.search(r"Page: .+ Command: switchboard (\w+)( JOB)?$", text)
    assert found, text
    commands = _parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    assert found[1] in commands  # type: ignore[operator]
    assert alert["annotations"]["summary"]
    assert alert["labels"]["severity"] in ("critical", "warning", "info")


def test_no_alert_is_there_twice() -> None:
    names = [alert["alert"] for alert in ALERTS]
    assert sorted(names) == sorted(set(names))


def test_there_is_an_alert_for_each_thing_that_goes_wrong() -> None:
    about = {name for alert in ALERTS for name in NAME.findall(alert["expr"])}
    assert about >= {
        "switchboard_iteration_last_success_timestamp_seconds",
        "switchboard_queue_oldest_seconds",
        "switchboard_holds",
        "switchboard_worker_failures_total",
        "switchboard_github_rate_limit_remaining",
        "switchboard_deliveries_pulled_total",
    }


# For each alert the series that should raise it and those that should not, minute by minute, and when to look.
LABELS = 'namespace="n", job="j"'
LEADS = {"series": f"switchboard_leader{{{LABELS}}}", "values": "1+0x180"}
CASES: dict[str, tuple[str, str, str, str]] = {
    "SwitchboardNoIteration": (
        "switchboard_iteration_last_success_timestamp_seconds{%s}",
        "0 60 120 120+0x60",
        "0+60x60",
        "10m",
    ),
    "SwitchboardNeverIterated": (
        "switchboard_iteration_last_success_timestamp_seconds{%s}",
        "0+0x60",
        "0 0 60+60x60",
        "10m",
    ),
    "SwitchboardOldJobWaits": (
        'switchboard_queue_oldest_seconds{%s, pool="p"}',
        "0+60x90",
        "1740+0x90",
        "60m",
    ),
    "SwitchboardBreakerOpen": ('switchboard_holds{%s, kind="breaker"}', "1+0x60", "0+0x60", "10m"),
    "SwitchboardWorkersFail": (
        'switchboard_worker_failures_total{%s, reason="pod_failed"}',
        "0+0x90 0+1x90",
        "0+1x180",
        "115m",
    ),
    "SwitchboardBudgetLow": (
        'switchboard_github_rate_limit_remaining{%s, installation="5"}',
        "900+0x60",
        "4000+0x60",
        "20m",
    ),
    "SwitchboardDeliveriesPulled": ("switchboard_deliveries_pulled_total{%s}", "0+1x120", "0+0x120", "60m"),
    "SwitchboardRunnersKeptBusy": ("switchboard_kills_refused_total{%s}", "0+1x120", "0+0x120", "90m"),
    "SwitchboardNoLeader": ("switchboard_leader{%s}", "0+0x60", "1+0x60", "10m"),
}


def test_every_alert_is_tried_both_ways() -> None:
    assert CASES.keys() == {alert["alert"] for alert in ALERTS}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("raised", [True, False])
def test_an_alert_comes_when_it_should_and_only_then(name: str, raised: bool, tmp_path: Path) -> None:
    series, bad, good, at = CASES[name]
    seen = [{"series": series % LABELS, "values": bad if raised else good}]
    seen += [] if name == "SwitchboardNoLeader" else [LEADS]
    check = {"interval": "1m", "input_series": seen, "promql_expr_test": [expected(name, at, raised)]}
    done = evaluate(check, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


LAST_SUCCESS = "switchboard_iteration_last_success_timestamp_seconds{%s}"


def test_endings_that_are_harmless_raise_no_alarm() -> None:
    (alert,) = (each for each in ALERTS if each["alert"] == "SwitchboardWorkersFail")
    left_out = set(re.findall(r'reason!~"([^"]+)"', alert["expr"]))
    assert [set(each.split("|")) for each in left_out] == [{reason.value for reason in HARMLESS}]


@pytest.mark.parametrize(("values", "raised"), [("_x20 0+1x40", True), ("_x20 0+0x40", False)])
def test_failures_rise_from_nothing_after_a_start(values: str, raised: bool, tmp_path: Path) -> None:
    series = f'switchboard_worker_failures_total{{{LABELS}, reason="pod_failed"}}'
    check = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values}, LEADS],
        "promql_expr_test": [expected("SwitchboardWorkersFail", "40m", raised)],
    }
    done = evaluate(check, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "values", "at", "raised"),
    [
        ("SwitchboardNoIteration", "0 60 60+0x60", "3m", False),  # two minutes without one
        ("SwitchboardNoIteration", "0 60 60+0x60", "4m", True),  # and not three
        ("SwitchboardNoIteration", "0+0x60", "10m", False),  # a process that never led has no success either
        ("SwitchboardNeverIterated", "_ 0+0x60", "2m", False),
        ("SwitchboardNeverIterated", "_ 0+0x60", "3m", True),
        # Restarted after ten minutes of good iterations, and none has ended well since.
        ("SwitchboardNeverIterated", "0+60x10 0+0x60", "15m", True),
        ("SwitchboardNeverIterated", "0+60x10 0 0+60x60", "15m", False),
    ],
)
def test_two_minutes_without_an_iteration_are_told_also_after_a_restart(
    name: str, values: str, at: str, raised: bool, tmp_path: Path
) -> None:
    seen = [{"series": LAST_SUCCESS % LABELS, "values": values}, LEADS]
    check = {"interval": "1m", "input_series": seen, "promql_expr_test": [expected(name, at, raised)]}
    done = evaluate(check, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_controller_that_stands_by_never_has_to_iterate(tmp_path: Path) -> None:
    stands_by = {**LEADS, "values": "0+0x60"}
    seen = [{"series": LAST_SUCCESS % LABELS, "values": "0+0x60"}, stands_by]
    never = expected("SwitchboardNeverIterated", "10m", raised=False)
    done = evaluate({"interval": "1m", "input_series": seen, "promql_expr_test": [never]}, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def expected(name: str, at: str, raised: bool) -> dict[str, Any]:
    """That the alert fires (1) or not (nothing); the labels besides are the alert's own affair."""
    expression = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
    samples = [{"labels": "{}", "value": 1}] if raised else []
    return {"expr": expression, "eval_time": at, "exp_samples": samples}


def test_with_the_chart_no_leader_elsewhere_hides_that_there_is_none_here(tmp_path: Path) -> None:
    rule = render({"metrics": {"prometheusRule": {"enabled": True}}}).one("PrometheusRule")
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(rule["spec"]), encoding="utf-8")
    for namespace, raised in (("elsewhere", True), (NAMESPACE, False)):
        leads = {"series": f'switchboard_leader{{namespace="{namespace}"}}', "values": "1+0x60"}
        wanted = expected("SwitchboardNoLeader", "10m", raised)
        check = {"interval": "1m", "input_series": [leads], "promql_expr_test": [wanted]}
        done = evaluate(check, tmp_path, rules)
        assert done.returncode == 0, done.stdout + done.stderr


def evaluate(check: dict[str, Any], folder: Path, rules: Path = RULES) -> subprocess.CompletedProcess[str]:
    file = folder / "check.yaml"
    content = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [check]}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    command = [str(program("promtool")), "test", "rules", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_evaluator_finds_nothing_wrong_with_the_rules() -> None:
    command = [str(program("promtool")), "check", "rules", str(RULES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
