"""`schedules:` and `quietHours:` of the file: all mistakes at once, each with its key."""

from typing import Any

import pytest

from controller.settings import File, parse_file

BASE: dict[str, Any] = {
    "github": {"apps": {"User": {"appId": "1", "privateKeyFile": "key.pem"}}},
    "pools": [{"name": "rv1", "labels": ["riscv"], "image": "runner:1"}],
}
GOOD: dict[str, Any] = {"name": "it", "type": "cron", "spec": "@daily", "action": "prune"}
BUILD = {"repo": "acme/x", "workflow": "nightly.yml", "ref": "main"}
WARM = {"entity": "acme", "labels": ["RISCV"], "runners": 2, "for": "2h"}


def parsed(*schedules: dict[str, Any], **more: Any) -> tuple[File | None, list[str]]:
    """The file, or its mistakes."""
    mistakes: list[str] = []
    return parse_file({**BASE, "schedules": list(schedules), **more}, mistakes), mistakes


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"type": "interval", "spec": "5"}, "spec: Missing time unit"),
        ({"type": "interval", "spec": "1.5h"}, "spec: Decimal values are not supported; write 90m"),
        ({"type": "interval", "spec": "0m"}, "spec: Zero interval is not allowed"),
        ({"type": "interval", "spec": "-5m"}, "spec: Negative intervals are not allowed"),
        ({"type": "interval", "spec": "5x"}, 'spec: Invalid time unit "x". Valid units are: s, m, h, d'),
        ({"type": "webhook"}, "type: Input should be 'cron', 'interval' or 'one_shot'"),
        ({"type": ["cron"]}, "type: Input should be 'cron', 'interval' or 'one_shot'"),
        ({"action": {"warm": 1}}, "action: Input should be"),
        ({"spec": "61 * * * *"}, 'spec: "61 * * * *" is no cron expression'),
        ({"timezone": "Mars/Olympus"}, 'timezone: "Mars/Olympus" is no IANA time zone'),
        ({"action": "sing"}, "action: Input should be"),
        ({"jitter": 11}, "jitter: Input should be less than or equal to 10"),
        ({"catchUp": "run_all_capped"}, "catchUpCap: missing"),
        ({"catchUpCap": 3}, "catchUpCap: only run_all_capped has a cap"),
        ({"quietHours": {"from": 1320, "to": "06:00"}}, "quietHours.from: expected a time of day in quotes"),
        ({"quietHours": {"from": "22:00", "to": "22:00"}}, "quietHours.to: expected another time than from"),
        ({"with": {"x": 1}}, "with.x: unknown key"),
        ({"action": "pause"}, "with.pool: missing; expected a pool or an entity"),
        ({"action": "pause", "with": {"pool": "rv2"}}, "with.pool: there is no pool rv2"),
        (
            {"action": "pause", "with": {"pool": "rv1", "entity": "a"}},
            "with.entity: expected a pool or an entity",
        ),
        ({"action": "drain"}, "with.board: missing"),
        ({"action": "drain", "with": {"board": "n", "for": "999999d"}}, "with.for: expected at most 366d"),
        ({"action": "dispatch", "with": {"repo": "acme/x", "ref": "main"}}, "with.workflow: missing"),
        ({"name": "Nightly"}, "name: expected small letters, digits"),
        ({"action": "dispatch", "with": {**BUILD, "repo": "acme"}}, "with.repo: expected OWNER/REPOSITORY"),
        (
            {"action": "dispatch", "with": {**BUILD, "workflow": ".github/workflows/nightly.yml"}},
            "with.workflow: expected the name of the workflow's file, such as nightly.yml",
        ),
        ({"action": "warm", "with": {**WARM, "entity": "@acme"}}, "with.entity: expected the login of"),
        ({"action": "warm", "with": {**WARM, "labels": ["other"]}}, "with.labels: no pool serves [other]"),
        ({"action": "warm", "with": {**WARM, "for": "8d"}}, "with.for: expected at most 7d"),
        ({"action": "warm", "with": {**WARM, "repo": "jane/x"}}, "with.repo: jane/x does not belong to acme"),
        (
            {"action": "warm", "with": {**WARM, "for": "1.5h"}},
            "with.for: Decimal values are not supported; write 90m",
        ),
    ],
)
def test_a_mistake_is_told_with_its_key(changes: dict[str, Any], mistake: str) -> None:
    _, mistakes = parsed({**GOOD, **changes})
    assert [each for each in mistakes if each.startswith(f"schedules.0.{mistake}")], mistakes


def test_all_mistakes_of_all_schedules_are_told_at_once() -> None:
    _, mistakes = parsed(
        {**GOOD, "spec": "x"},
        {**GOOD, "jitter": -1},
        {**GOOD, "name": "other", "type": "interval", "spec": "0s"},
    )
    assert {each.split(":")[0] for each in mistakes} == {
        "schedules.0.spec",
        "schedules.1.name",
        "schedules.1.jitter",
        "schedules.2.spec",
    }


def test_a_pool_s_quiet_hours_are_checked_with_the_rest() -> None:
    pool = {**BASE["pools"][0], "quietHours": {"from": "25:00", "to": "06:00", "timezone": "Nowhere"}}
    _, mistakes = parsed(pools=[pool])
    assert {each.split(":")[0] for each in mistakes} == {
        "pools.0.quietHours.from",
        "pools.0.quietHours.timezone",
    }


def test_arguments_are_kept_in_plain_values() -> None:
    file, mistakes = parsed({**GOOD, "action": "warm", "with": WARM})
    assert file is not None, mistakes
    kept = file.schedules[0].as_domain().arguments
    assert kept == {"entity": "acme", "labels": ["riscv"], "runners": 2, "for": 7200.0}
