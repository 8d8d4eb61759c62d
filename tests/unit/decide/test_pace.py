"""When a step that acts every so often acts again."""

from datetime import timedelta

import pytest

from controller.decide.pace import is_time
from tests.unit.decide.builders import NOW

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(("seconds", "due"), [(0, False), (59, False), (60, True), (-59, False), (-60, True)])
def test_a_time_so_far_away_is_due_on_either_side(seconds: int, due: bool) -> None:
    assert is_time(NOW - timedelta(seconds=seconds), MINUTE, NOW) is due


def test_what_was_never_done_is_due() -> None:
    assert is_time(None, MINUTE, NOW)
