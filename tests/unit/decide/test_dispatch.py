"""Which run a lost answer belongs to, and what an attempt that failed means."""

from datetime import timedelta

import pytest

from controller.decide.dispatch import (
    GiveUp,
    TryAgain,
    advice,
    after_attempt,
    may_send,
    pick_run,
    search_span,
    span_before,
)
from controller.domain.schedules import Action, Occurrence, OccurrenceStatus, StartedRun
from tests.unit.decide.schedule_builders import NOON

BOT = "switchboard[bot]"


def an_occurrence(**changes: object) -> Occurrence:
    values: dict[str, object] = {
        "id": 1,
        "schedule": "nightly",
        "due_at": NOON,
        "action": Action.DISPATCH,
        "arguments": {},
        "status": OccurrenceStatus.RUNNING,
        "created_at": NOON,
    }
    return Occurrence(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attempts", "sent", "verdict"),
    [
        (1, True, TryAgain(NOON + timedelta(minutes=1))),
        (2, True, TryAgain(NOON + timedelta(minutes=2))),
        (3, True, TryAgain(NOON + timedelta(minutes=4))),  # only to look
        (4, True, GiveUp()),
        (2, False, TryAgain(NOON + timedelta(minutes=2))),
        (3, False, GiveUp()),
    ],
)
def test_pauses_grow_and_end(attempts: int, sent: bool, verdict: TryAgain | GiveUp) -> None:
    assert after_attempt(an_occurrence(attempts=attempts), NOON, sent=sent) == verdict


@pytest.mark.parametrize(("attempts", "may"), [(1, True), (3, True), (4, False)])
def test_behind_the_last_attempt_nothing_is_sent_any_more(attempts: int, may: bool) -> None:
    assert may_send(an_occurrence(attempts=attempts)) is may


def test_a_run_is_looked_for_from_the_first_request_to_a_minute_after_the_last_by_any_clock() -> None:
    assert search_span(an_occurrence(), NOON) is None
    last, skew = NOON + timedelta(minutes=3), timedelta(minutes=10)
    span = search_span(an_occurrence(sent_at=NOON, last_sent_at=last), NOON + timedelta(hours=5))
    assert span == (NOON - skew, last + timedelta(minutes=1) + skew)
    assert span_before(NOON)[0] == span[0]  # else what was there before could be found afterwards


def a_run(run_id: int, file: str = "nightly.yml", actor: str | None = BOT) -> StartedRun:
    return StartedRun(run_id, "https://github.com", f".github/workflows/{file}", 77, actor)


def test_the_first_run_that_our_bot_started_and_nobody_has_is_ours() -> None:
    runs = [a_run(5), a_run(1), a_run(2, "other.yml"), a_run(3, actor="mona"), a_run(4)]
    assert pick_run(runs, "nightly.yml", BOT, {1}) == runs[4]
    assert pick_run(runs, "nightly.yml", BOT, {1, 4, 5}) is None


def test_a_workflow_may_be_named_by_its_number_and_a_file_by_its_branch_too() -> None:
    assert pick_run([a_run(1)], "77", BOT, ()) == a_run(1)
    assert pick_run([a_run(1)], "78", BOT, ()) is None
    assert pick_run([a_run(1, "nightly.yml@main")], "nightly.yml", BOT, ()) is not None


def test_a_run_that_names_nobody_may_be_ours() -> None:
    assert pick_run([a_run(1, actor=None)], "nightly.yml", BOT, ()) == a_run(1, actor=None)
    assert pick_run([a_run(1, actor=BOT.upper())], "nightly.yml", BOT, ()) is not None


@pytest.mark.parametrize(
    ("status", "said"), [(403, "actions: write"), (404, "check both names"), (422, "workflow_dispatch")]
)
def test_a_refusal_says_what_to_change(status: int, said: str) -> None:
    assert said in advice(status, "acme/llvm", "nightly.yml", "main")
