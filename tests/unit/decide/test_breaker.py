"""Boards and pools that swallow jobs are held, probed, and used again."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.breaker import Breakers, judge_breakers
from controller.domain.endings import Ending
from controller.domain.holds import HoldScope, HoldWhy
from controller.domain.reasons import Reason
from tests.unit.decide.builders import NOW, ago

SILENT = [
    Reason.RUNNER_IDLE,
    Reason.RUNNER_REMOVED,
    Reason.NODE_UNREACHABLE,
    Reason.POD_STUCK_AFTER_JOB,
    Reason.POD_MISSING,
    Reason.PROVISION_FAILED,
]


def an_ending(
    at: datetime = NOW,
    reason: Reason | None = Reason.POD_FAILED,
    node: str | None = "board-1",
    pool: str = "x",
    proven: bool = False,
) -> Ending:
    return Ending("worker", pool, node, at, reason, proven)


def failures(count: int, *nodes: str, newest: datetime = NOW) -> list[Ending]:
    """So many in a row, newest first, a second apart, on these boards by turns."""
    boards = nodes or ("board-1",)
    return [an_ending(newest - timedelta(seconds=n), node=boards[n % len(boards)]) for n in range(count)]


def held(breakers: Breakers) -> set[tuple[HoldScope, str]]:
    return {(hold.scope, hold.target) for hold in breakers.holds}


@pytest.mark.parametrize(("count", "targets"), [(2, set()), (3, {(HoldScope.BOARD, "board-1")})])
def test_a_board_is_held_after_three_failures(count: int, targets: set[tuple[HoldScope, str]]) -> None:
    assert held(judge_breakers(failures(count), NOW)) == targets


@pytest.mark.parametrize(("count", "minutes"), [(3, 1), (4, 2), (5, 4), (6, 8), (7, 16), (8, 30), (40, 30)])
def test_a_hold_lasts_twice_as_long_each_time(count: int, minutes: int) -> None:
    (hold,) = judge_breakers(failures(count), NOW).holds
    assert hold.until == NOW + timedelta(minutes=minutes)
    assert hold.why is HoldWhy.BREAKER


@pytest.mark.parametrize(("age", "in_force"), [(59, True), (60, False)])
def test_a_hold_ends_by_itself(age: int, in_force: bool) -> None:
    assert bool(judge_breakers(failures(3, newest=ago(age)), NOW).holds) is in_force


def test_a_boards_own_failures_are_not_the_pools() -> None:
    assert held(judge_breakers(failures(6), NOW)) == {(HoldScope.BOARD, "board-1")}


def test_failures_on_two_boards_in_a_row_are_the_pools() -> None:
    breakers = judge_breakers(failures(3, "board-1", "board-2"), NOW)
    assert held(breakers) == {(HoldScope.POOL, "x")}


def test_two_failures_on_two_boards_are_not_enough() -> None:
    assert held(judge_breakers(failures(2, "board-1", "board-2"), NOW)) == set()


@pytest.mark.parametrize("proven", [True, False])
def test_any_success_breaks_the_run(proven: bool) -> None:
    success = an_ending(ago(2), reason=Reason.POD_FAILED if proven else None, proven=proven)
    ended = [*failures(2), success, *failures(5, newest=ago(3))]
    assert held(judge_breakers(ended, NOW)) == set()


@pytest.mark.parametrize("reason", SILENT)
def test_nobodys_habits_close_a_pool_for_others(reason: Reason) -> None:
    quiet = [an_ending(ago(n), reason=reason, node=f"board-{n % 3}") for n in range(30)]
    assert judge_breakers(quiet, NOW) == Breakers((), frozenset())


def test_endings_that_say_nothing_do_not_break_a_run_either() -> None:
    ended = [*failures(2), an_ending(ago(3), Reason.RUNNER_IDLE), *failures(1, newest=ago(4))]
    assert held(judge_breakers(ended, NOW)) == {(HoldScope.BOARD, "board-1")}


def test_one_refused_runner_version_closes_the_pool_at_once() -> None:
    breakers = judge_breakers([an_ending(reason=Reason.RUNNER_VERSION_REFUSED)], NOW)
    assert held(breakers) == {(HoldScope.POOL, "x")}
    assert "image" in breakers.holds[0].note


def test_a_pool_whose_hold_is_over_is_probed_until_it_has_shown_that_it_works() -> None:
    refused = an_ending(ago(61), reason=Reason.RUNNER_VERSION_REFUSED)
    assert judge_breakers([refused], NOW) == Breakers((), frozenset({"x"}))
    assert judge_breakers([an_ending(reason=None), refused], NOW) == Breakers((), frozenset())


def test_pools_do_not_answer_for_each_other() -> None:
    ended = [
        an_ending(ago(n), node=f"board-{n}", pool=pool)
        for n, pool in enumerate(["x", "y", "x", "y", "x", "y"])
    ]
    assert held(judge_breakers(ended[:4], NOW)) == set()
    assert held(judge_breakers(ended, NOW)) == {(HoldScope.POOL, "x"), (HoldScope.POOL, "y")}


ENDINGS = st.lists(
    st.builds(
        an_ending,
        at=st.integers(0, 7200).map(ago),
        reason=st.none() | st.sampled_from(list(Reason)),
        node=st.sampled_from([None, "board-1", "board-2"]),
        pool=st.sampled_from(["x", "y"]),
        proven=st.booleans(),
    ),
    max_size=12,
).map(lambda ended: sorted(ended, key=lambda each: each.at, reverse=True))


@given(ENDINGS)
def test_a_hold_always_ends_within_half_an_hour_of_its_newest_failure(ended: list[Ending]) -> None:
    for hold in judge_breakers(ended, NOW).holds:
        assert hold.until is not None
        assert NOW < hold.until <= max(each.at for each in ended) + timedelta(minutes=30)


@given(ENDINGS)
def test_a_pool_is_held_or_probed_never_both(ended: list[Ending]) -> None:
    breakers = judge_breakers(ended, NOW)
    pools = {hold.target for hold in breakers.holds if hold.scope is HoldScope.POOL}
    assert not pools & breakers.probing


@given(ENDINGS)
def test_a_restart_changes_nothing(ended: list[Ending]) -> None:
    """What was held a second ago and is not over is held still: holds follow from rows alone."""
    before = judge_breakers(ended, NOW - timedelta(seconds=1))
    now = judge_breakers(ended, NOW)
    assert {hold for hold in before.holds if hold.until and hold.until > NOW} == set(now.holds)
