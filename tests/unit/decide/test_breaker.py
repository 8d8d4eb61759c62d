"""Boards and pools that swallow jobs are held, probed, and used again."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.breaker import Breakers, judge_breakers
from controller.decide.trials import try_again, try_first
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
IMAGES = {"x": "image", "y": "image"}


def an_ending(
    at: datetime = NOW,
    reason: Reason | None = Reason.POD_FAILED,
    node: str | None = "board-1",
    pool: str = "x",
    proven: bool = False,
    image: str = "image",
) -> Ending:
    return Ending("worker", pool, node, at, reason, proven, image)


def failures(count: int, *nodes: str, newest: datetime = NOW) -> list[Ending]:
    """So many in a row, newest first, a second apart, on these boards by turns."""
    boards = nodes or ("board-1",)
    return [an_ending(newest - timedelta(seconds=n), node=boards[n % len(boards)]) for n in range(count)]


def judge(ended: list[Ending], now: datetime = NOW) -> Breakers:
    return judge_breakers(ended, IMAGES, now)


def held(breakers: Breakers) -> set[tuple[HoldScope, str]]:
    return {(hold.scope, hold.target) for hold in breakers.holds}


@pytest.mark.parametrize(("count", "targets"), [(2, set()), (3, {(HoldScope.BOARD, "board-1")})])
def test_a_board_is_held_after_three_failures(count: int, targets: set[tuple[HoldScope, str]]) -> None:
    assert held(judge(failures(count))) == targets


@pytest.mark.parametrize(("count", "minutes"), [(3, 1), (4, 2), (5, 4), (6, 8), (7, 16), (8, 30), (40, 30)])
def test_a_hold_lasts_twice_as_long_each_time(count: int, minutes: int) -> None:
    (hold,) = judge(failures(count)).holds
    assert hold.until == NOW + timedelta(minutes=minutes)
    assert hold.why is HoldWhy.BREAKER


@pytest.mark.parametrize(("age", "in_force"), [(59, True), (60, False)])
def test_a_hold_ends_by_itself(age: int, in_force: bool) -> None:
    assert bool(judge(failures(3, newest=ago(age))).holds) is in_force


def test_a_boards_own_failures_are_not_the_pools() -> None:
    assert held(judge(failures(6))) == {(HoldScope.BOARD, "board-1")}


def test_failures_on_two_boards_in_a_row_are_the_pools() -> None:
    breakers = judge(failures(3, "board-1", "board-2"))
    assert held(breakers) == {(HoldScope.POOL, "x")}


def test_two_failures_on_two_boards_are_not_enough() -> None:
    assert held(judge(failures(2, "board-1", "board-2"))) == set()


@pytest.mark.parametrize("proven", [True, False])
def test_any_success_breaks_the_run(proven: bool) -> None:
    success = an_ending(ago(2), reason=Reason.POD_FAILED if proven else None, proven=proven)
    ended = [*failures(2), success, *failures(5, newest=ago(3))]
    assert held(judge(ended)) == set()


@pytest.mark.parametrize("reason", SILENT)
def test_nobodys_habits_close_a_pool_for_others(reason: Reason) -> None:
    quiet = [an_ending(ago(n), reason=reason, node=f"board-{n % 3}") for n in range(30)]
    assert judge(quiet).holds == ()
    assert judge(quiet).trials["x"] == try_first("image")


def test_endings_that_say_nothing_do_not_break_a_run_either() -> None:
    ended = [*failures(2), an_ending(ago(3), Reason.RUNNER_IDLE), *failures(1, newest=ago(4))]
    assert held(judge(ended)) == {(HoldScope.BOARD, "board-1")}


def test_one_refused_runner_version_closes_every_pool_of_its_image_at_once() -> None:
    ended = [an_ending(reason=Reason.RUNNER_VERSION_REFUSED)]
    breakers = judge_breakers(ended, {**IMAGES, "z": "another image"}, NOW)
    assert held(breakers) == {(HoldScope.POOL, "x"), (HoldScope.POOL, "y")}
    assert "image" in breakers.holds[0].note


def test_refusals_of_an_image_are_counted_over_its_pools() -> None:
    refused = [an_ending(ago(n), Reason.RUNNER_VERSION_REFUSED, pool="xy"[n % 2]) for n in range(4)]
    pools = [hold for hold in judge(refused).holds if hold.scope is HoldScope.POOL]
    assert [hold.until for hold in pools] == [NOW + timedelta(minutes=8)] * 2


@pytest.mark.parametrize(
    ("newer", "targets"),
    [
        (an_ending(reason=None, pool="y"), {"x"}),  # it works in y; boards of x may keep an older one
        (an_ending(reason=None, pool="x"), set()),
        (an_ending(reason=None, pool="y", image="image of next week"), {"x", "y"}),
    ],
)
def test_an_image_that_works_again_opens_the_pools_that_have_not_refused_it(
    newer: Ending, targets: set[str]
) -> None:
    refused = an_ending(ago(2), Reason.RUNNER_VERSION_REFUSED)
    assert held(judge([newer, refused])) == {(HoldScope.POOL, name) for name in targets}


def test_what_fails_on_the_boards_of_one_pool_does_not_hold_the_others_longer() -> None:
    ended = [an_ending(ago(1), pool="y"), an_ending(ago(61), Reason.RUNNER_VERSION_REFUSED)]
    assert {(hold.target, hold.until) for hold in judge(ended).holds} == set()
    ended = [an_ending(ago(1), pool="x"), an_ending(ago(61), Reason.RUNNER_VERSION_REFUSED)]
    assert held(judge(ended)) == {(HoldScope.POOL, "x")}


def test_a_pool_whose_hold_is_over_is_probed_until_it_has_shown_that_it_works() -> None:
    refused = an_ending(ago(61), reason=Reason.RUNNER_VERSION_REFUSED)
    assert judge([refused]).trials["x"] == try_again(
        "the image was refused: runner_version_refused", shared=True
    )
    assert "x" not in judge([an_ending(reason=None), refused]).trials


@pytest.mark.parametrize(
    ("ending", "tried"),
    [
        (an_ending(reason=None), False),
        (an_ending(reason=Reason.RUNNER_IDLE, proven=True), False),
        (an_ending(reason=None, image="image of last week"), True),
        (an_ending(reason=None, pool="y"), True),
        (an_ending(), True),
    ],
)
def test_an_image_is_tried_by_a_few_until_somebody_has_seen_it_work(ending: Ending, tried: bool) -> None:
    trial = judge([ending]).trials.get("x")
    assert trial == (try_first("image") if tried else None)


def test_what_another_image_did_holds_nobody() -> None:
    refused = [an_ending(reason=Reason.RUNNER_VERSION_REFUSED, image="image of last week")]
    assert judge(refused).holds == ()


def test_pools_do_not_answer_for_each_other() -> None:
    ended = [
        an_ending(ago(n), node=f"board-{n}", pool=pool)
        for n, pool in enumerate(["x", "y", "x", "y", "x", "y"])
    ]
    assert held(judge(ended[:4])) == set()
    assert held(judge(ended)) == {(HoldScope.POOL, "x"), (HoldScope.POOL, "y")}


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
    for hold in judge(ended).holds:
        assert hold.until is not None
        assert NOW < hold.until <= max(each.at for each in ended) + timedelta(minutes=30)


@given(ENDINGS)
def test_a_pool_is_held_or_probed_never_both(ended: list[Ending]) -> None:
    breakers = judge(ended)
    pools = {hold.target for hold in breakers.holds if hold.scope is HoldScope.POOL}
    assert not pools & {name for name, trial in breakers.trials.items() if trial.why == HoldWhy.BREAKER}


@given(ENDINGS)
def test_a_restart_changes_nothing(ended: list[Ending]) -> None:
    """What was held a second ago and is not over is held still: holds follow from rows alone."""
    before = judge(ended, NOW - timedelta(seconds=1))
    now = judge(ended)
    assert {hold for hold in before.holds if hold.until and hold.until > NOW} == set(now.holds)
