"""The plan in words: what a skipped job waits for, and until when."""

from datetime import datetime, timedelta

import pytest

from controller.decide.demand import Plan, Skipped
from controller.domain.holds import Hold, HoldScope, HoldWhy
from controller.domain.reasons import Skip
from controller.web.plan_text import describe_plan
from tests.unit.decide.builders import NOW, a_job

PAUSED = "Entity acme is paused: new firmware."
LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(("until", "told"), [(None, PAUSED), (LATER, f"{PAUSED} Until {LATER.isoformat()}.")])
def test_a_held_job_is_told_by_what_and_until_when(until: datetime | None, told: str) -> None:
    hold = Hold(HoldScope.ENTITY, "acme", HoldWhy.PAUSE, "ada", NOW, until=until, note="new\x1bfirmware")
    said = describe_plan(Plan(steps=(), skips=(Skipped(a_job(), Skip.HELD, hold.detail),)), NOW)
    assert said.endswith(told)
