"""The demo's made-up past could have happened, and leaves the controller nothing to do."""

import random
from datetime import timedelta
from itertools import pairwise

import pytest

from controller.demo.failures import failure_info
from controller.demo.fleet import POOLS, DemoPool
from controller.demo.past import FAILURES, LATE, LENGTH, minutes, work
from controller.domain.constants import BREAKER_MEMORY
from controller.domain.reasons import Reason
from tests.clocks import EPOCH as NOW


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_no_board_is_taken_twice_at_once_and_nothing_is_under_way_any_more(pool: DemoPool) -> None:
    stays = list(work(pool, random.Random(1), NOW - LENGTH, NOW))
    assert stays
    for board in {stay.board for stay in stays}:
        own = [stay for stay in stays if stay.board == board]
        assert all(one.ended_at <= after.reserved_at for one, after in pairwise(own))
    assert all(stay.queued_at <= stay.reserved_at < stay.ended_at < NOW for stay in stays)
    assert all(NOW - stay.reserved_at >= BREAKER_MEMORY for stay in stays if stay.failure)


def test_the_snapshots_tell_what_the_boards_did() -> None:
    pool = POOLS[0]
    stays = list(work(pool, random.Random(2), NOW - timedelta(hours=6), NOW))
    told = minutes(pool, stays, NOW - timedelta(hours=6), NOW)
    assert len(told["at"]) == len(told["busy"]) == len(told["depth"]) == len(told["oldest"]) == 360
    assert 0 < max(told["busy"]) <= pool.boards
    assert all(
        (depth > 0) == (oldest > 0) for depth, oldest in zip(told["depth"], told["oldest"], strict=True)
    )


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_the_last_hour_is_like_the_demo_itself_and_begins_without_a_jam(pool: DemoPool) -> None:
    stays = list(work(pool, random.Random(3), NOW - LENGTH, NOW))
    late = [stay for stay in stays if stay.reserved_at >= NOW - LATE]
    assert len(late) >= 20, "enough for an estimate"
    assert max(stay.ended_at - stay.reserved_at for stay in late) < timedelta(minutes=10)
    assert max(minutes(pool, stays, NOW - LATE, NOW)["depth"]) < 10


@pytest.mark.parametrize("reason", FAILURES)
def test_every_failure_of_the_past_left_something_to_read(reason: Reason) -> None:
    info = failure_info(reason, "board-1", NOW)
    assert info["log_tail"] or info["events"]
    assert "board-1" in str(info["events"])
