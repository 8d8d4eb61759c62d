"""What is remembered of limits, and the pace of JIT calls."""

from datetime import datetime, timedelta

import pytest

from controller.domain.constants import JIT_PER_MINUTE
from controller.errors import RateLimited
from controller.gateways.github.answers import Answer
from controller.gateways.github.budgets import Bucket
from controller.ports import Budget
from tests.clocks import EPOCH as NOW

HOUR = timedelta(hours=1)


def told(remaining: int, resets_at: datetime = NOW + HOUR, status: int = 200, **headers: str) -> Answer:
    quota = {
        "x-ratelimit-limit": "5000",
        "x-ratelimit-remaining": str(remaining),
        "x-ratelimit-reset": str(int(resets_at.timestamp())),
    }
    return Answer("anything", status, quota | {k.replace("_", "-"): v for k, v in headers.items()}, b"{}")


def secondary() -> Answer:
    return Answer("anything", 403, {}, b'{"message": "You have exceeded a secondary rate limit"}')


@pytest.fixture
def bucket() -> Bucket:
    return Bucket("installation 7")


def test_before_any_answer_the_limit_is_unknown(bucket: Bucket) -> None:
    assert bucket.budget(NOW) == Budget()


def test_the_last_answer_tells_what_is_left(bucket: Bucket) -> None:
    bucket.note(told(4321), NOW)
    assert bucket.budget(NOW) == Budget(5000, 4321, NOW + HOUR)


def test_an_answer_that_was_overtaken_does_not_raise_the_count(bucket: Bucket) -> None:
    bucket.note(told(100), NOW)
    bucket.note(told(103), NOW)
    assert bucket.budget(NOW).remaining == 100


def test_a_new_window_raises_the_count(bucket: Bucket) -> None:
    bucket.note(told(100), NOW)
    bucket.note(told(4999, NOW + 2 * HOUR), NOW + HOUR)
    assert bucket.budget(NOW + HOUR).remaining == 4999


def test_a_late_answer_of_the_old_window_is_ignored(bucket: Bucket) -> None:
    bucket.note(told(4999, NOW + HOUR), NOW)
    bucket.note(told(3, NOW + timedelta(seconds=1)), NOW)
    assert bucket.budget(NOW).remaining == 4999


def test_after_the_reset_the_budget_is_full_again_without_asking(bucket: Bucket) -> None:
    bucket.note(told(3), NOW)
    assert bucket.budget(NOW + HOUR).remaining == 5000


def test_another_resource_does_not_count_as_core(bucket: Bucket) -> None:
    bucket.note(told(4000), NOW)
    bucket.note(told(9, x_ratelimit_resource="actions_runner_registration"), NOW)
    assert bucket.budget(NOW).remaining == 4000


def test_the_last_request_of_the_window_blocks_until_the_reset(bucket: Bucket) -> None:
    bucket.note(told(0), NOW)
    with pytest.raises(RateLimited) as limited:
        bucket.check(NOW + HOUR - timedelta(seconds=1))
    assert limited.value.until == NOW + HOUR
    bucket.check(NOW + HOUR)


def test_secondary_limits_double_until_an_answer_succeeds(bucket: Bucket) -> None:
    now, waits = NOW, []
    for _ in range(3):
        limited = bucket.note(secondary(), now)
        assert limited is not None
        waits.append(limited.until - now)
        now = limited.until
    assert waits == [timedelta(seconds=60), timedelta(seconds=120), timedelta(seconds=240)]
    bucket.note(told(4000), now)
    limited = bucket.note(secondary(), now)
    assert limited is not None
    assert limited.until - now == timedelta(seconds=60)


def test_requests_that_were_under_way_together_are_one_strike(bucket: Bucket) -> None:
    for _ in range(10):
        bucket.note(secondary(), NOW)
    bucket.note(told(4000), NOW)  # sent before the limit struck: no reason to start from 60 s again
    later = bucket.budget(NOW).blocked_until
    assert later is not None
    limited = bucket.note(secondary(), later)
    assert limited is not None
    assert limited.until - later == timedelta(seconds=120)


def test_a_shorter_limit_does_not_end_a_longer_one(bucket: Bucket) -> None:
    bucket.note(told(9, status=429, retry_after="600"), NOW)
    bucket.note(told(9, status=429, retry_after="5"), NOW)
    assert bucket.budget(NOW).blocked_until == NOW + timedelta(seconds=600)


def test_a_block_that_is_over_is_not_shown(bucket: Bucket) -> None:
    bucket.note(told(9, status=429, retry_after="5"), NOW)
    assert bucket.budget(NOW + timedelta(seconds=5)).blocked_until is None


def test_jit_calls_are_paced_and_come_back_evenly(bucket: Bucket) -> None:
    for _ in range(JIT_PER_MINUTE):
        bucket.take_jit_call(NOW)
    assert bucket.budget(NOW).jit_allowance == 0
    with pytest.raises(RateLimited) as limited:
        bucket.take_jit_call(NOW)
    assert limited.value.until == NOW + timedelta(seconds=0.4)
    assert bucket.budget(NOW + timedelta(seconds=10)).jit_allowance == 25
    assert bucket.budget(NOW + HOUR).jit_allowance == JIT_PER_MINUTE
    bucket.take_jit_call(limited.value.until)


def test_a_clock_that_jumps_back_gives_no_calls(bucket: Bucket) -> None:
    bucket.take_jit_call(NOW)
    assert bucket.budget(NOW - HOUR).jit_allowance == JIT_PER_MINUTE - 1


def test_what_a_clock_that_was_ahead_has_noted_keeps_nobody_until_that_time_comes(bucket: Bucket) -> None:
    ahead = NOW + 24 * HOUR
    for _ in range(JIT_PER_MINUTE):
        bucket.take_jit_call(ahead)
    bucket.note(told(9, status=429, retry_after="60"), ahead)
    with pytest.raises(RateLimited):
        bucket.check(ahead)
    bucket.check(NOW)
    assert bucket.budget(NOW).jit_allowance == 0
    assert bucket.budget(NOW + timedelta(minutes=1)).jit_allowance == JIT_PER_MINUTE
    bucket.note(told(9, status=429, retry_after="60"), NOW)
    assert bucket.budget(NOW).blocked_until == NOW + timedelta(seconds=60)
