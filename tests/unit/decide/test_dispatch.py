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
)
from controller.domain.schedules import Action, Occurrence, OccurrenceStatus, StartedRun
from tests.unit.decide.schedule_builders import NOON


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


def test_a_run_is_looked_for_from_the_first_request_to_a_minute_after_the_last() -> None:
    assert search_span(an_occurrence(), NOON) is None
    last = NOON + timedelta(minutes=3)
    span = search_span(an_occurrence(sent_at=NOON, last_sent_at=last), NOON + timedelta(hours=5))
    assert span == (NOON - timedelta(seconds=5), last + timedelta(seconds=65))


def test_the_first_run_of_the_workflow_that_nobody_has_is_ours() -> None:
    runs = [
        StartedRun(4, "d", ".github/workflows/nightly.yml@main"),
        StartedRun(1, "a", ".github/workflows/nightly.yml"),
        StartedRun(2, "b", ".github/workflows/other.yml"),
        StartedRun(3, "c", ".github/workflows/nightly.yml"),
    ]
    assert pick_run(runs, "nightly.yml", frozenset({1})) == runs[3]
    assert pick_run(runs, "nightly.yml", frozenset({1, 3, 4})) is None
    assert pick_run(runs, "77", frozenset({1})) == runs[2]  # a workflow by number cannot be told apart


@pytest.mark.parametrize(
    ("status", "said"), [(403, "actions: write"), (404, "check both names"), (422, "workflow_dispatch")]
)
def test_a_refusal_says_what_to_change(status: int, said: str) -> None:
    assert said in advice(status, "acme/llvm", "nightly.yml", "main")
