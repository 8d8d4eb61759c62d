"""An instrument that nothing sets would show 0 for ever, and an alert on it would never come."""

import re
from pathlib import Path

from controller.telemetry.metrics import Metrics

PROGRAM = Path(__file__).resolve().parents[3] / "controller"
WRITES = re.compile(r"metrics\.(\w+)(?:\s*\.labels\([^;]*?\))?\s*\.(?:inc|set|observe|see)\(")
BEHIND = {"budgets": "github_rate_limit_remaining"}  # a gauge that is set by another name
WITH_SCHEDULES = {"schedule_runs_total"}  # set by what runs schedules


def test_every_instrument_is_set_somewhere_in_the_program() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in PROGRAM.rglob("*.py"))
    used = {BEHIND.get(name, name) for name in WRITES.findall(text)}
    there = {name for name, value in vars(Metrics()).items() if hasattr(value, "describe")} - {"registry"}
    assert there - used <= WITH_SCHEDULES
    assert used <= there
