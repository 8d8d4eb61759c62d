"""Try again, wait, or give up."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.attempts import Attempt, after_failure, back_off
from controller.domain.reasons import EXPLANATIONS, Reason
from tests.unit.decide.builders import NOW


@pytest.mark.parametrize(
    ("attempts", "minutes"),
    [(0, None), (1, None), (2, 1), (3, 2), (4, 4), (5, 8), (6, 16), (7, 30), (8, 30), (10_000, 30)],
)
def test_the_first_failure_is_tried_again_at_once_later_ones_wait(attempts: int, minutes: int | None) -> None:
    assert back_off(attempts) == (timedelta(minutes=minutes) if minutes else None)


@given(st.integers(0, 10**6))
def test_waits_never_shrink_and_never_exceed_half_an_hour(attempts: int) -> None:
    this, following = back_off(attempts), back_off(attempts + 1)
    assert (this or timedelta()) <= (following or timedelta()) <= timedelta(minutes=30)


def test_the_first_failure_of_a_job_does_not_make_it_wait() -> None:
    assert after_failure(0, 0, Reason.POD_FAILED, NOW, own_fault=False) == Attempt(1, 0, None, gave_up=False)


def test_the_second_in_a_row_does() -> None:
    assert after_failure(1, 0, Reason.POD_FAILED, NOW, own_fault=False) == Attempt(
        2, 0, NOW + timedelta(minutes=1), gave_up=False
    )


@pytest.mark.parametrize(("own_faults", "gave_up"), [(0, False), (1, False), (2, True)])
def test_three_attempts_that_are_its_own_fault_are_enough(own_faults: int, gave_up: bool) -> None:
    outcome = after_failure(own_faults, own_faults, Reason.PROVISION_FAILED, NOW, own_fault=True)
    assert outcome is not None
    assert outcome.gave_up is gave_up


@given(st.integers(0, 10_000))
def test_outages_have_no_limit(attempts: int) -> None:
    outcome = after_failure(attempts, 2, Reason.PROVISION_FAILED, NOW, own_fault=False)
    assert outcome is not None
    assert not outcome.gave_up


@pytest.mark.parametrize(
    "reason",
    [Reason.RUNNER_IDLE, Reason.RUNNER_REMOVED, Reason.NODE_UNREACHABLE, Reason.POD_STUCK_AFTER_JOB],
)
def test_endings_that_are_nobodys_fault_count_for_nothing(reason: Reason) -> None:
    assert not EXPLANATIONS[reason].backs_off
    assert after_failure(5, 2, reason, NOW, own_fault=True) is None
