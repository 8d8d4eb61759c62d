"""What is left over outside, and when it goes."""

from datetime import datetime
from typing import Any

import pytest

from controller.decide.leftovers import (
    confirmed_leftovers,
    find_leftover_runners,
    find_lost_secrets,
    find_terminal_pods,
)
from controller.domain.changes import Decided, DeletePod, DeleteRunner
from controller.domain.sightings import PodPhase, PodView, Unknown
from controller.domain.workers import NameRule, WorkerStatus
from tests.unit.decide.builders import NAME, NOW, SCOPE, a_pod, a_runner, a_view, ago

PROD = NameRule.of("rise-riscv-runner", "prod")
LEFTOVER = (SCOPE, 900, NAME)


@pytest.mark.parametrize(
    ("status", "left"),
    [
        (None, True),
        (WorkerStatus.COMPLETED, True),
        (WorkerStatus.FAILED, True),
        (WorkerStatus.PENDING, False),
        (WorkerStatus.RUNNING, False),
    ],
)
def test_a_runner_is_left_over_when_its_row_is_ended_or_missing(
    status: WorkerStatus | None, left: bool
) -> None:
    view = a_view(runners={SCOPE: (a_runner(),)})
    rows = {} if status is None else {NAME: status}
    assert find_leftover_runners(view, rows, PROD) == (frozenset({LEFTOVER}) if left else frozenset())


@pytest.mark.parametrize(
    "name",
    [
        "rise-riscv-runner-staging-a1b2c3d4e",
        "rise-riscv-runner-a1b2c3d4",
        "rise-riscv-runner-A1B2C3D4E",
        "my-rise-riscv-runner-a1b2c3d4e",
        "somebody-elses",
    ],
)
def test_runners_whose_whole_name_is_not_ours_are_left_alone(name: str) -> None:
    view = a_view(runners={SCOPE: (a_runner(name),)})
    assert find_leftover_runners(view, {}, PROD) == frozenset()


def test_a_busy_runner_is_nobodys_leftover() -> None:
    view = a_view(runners={SCOPE: (a_runner(busy=True),)})
    assert find_leftover_runners(view, {}, PROD) == frozenset()


def test_a_runner_that_is_being_provisioned_is_no_leftover() -> None:
    view = a_view(runners={SCOPE: (a_runner(),)}, in_flight=frozenset({NAME}))
    assert find_leftover_runners(view, {}, PROD) == frozenset()


@pytest.mark.parametrize(("rows", "left"), [({}, False), ({NAME: WorkerStatus.FAILED}, True)])
def test_without_a_view_of_the_pods_a_missing_row_proves_nothing(
    rows: dict[str, WorkerStatus], left: bool
) -> None:
    """After a restored database its pod may be at work; it is adopted as soon as it is seen."""
    view = a_view(runners={SCOPE: (a_runner(),)}, pods=Unknown("away"))
    assert find_leftover_runners(view, rows, PROD) == (frozenset({LEFTOVER}) if left else frozenset())


def test_a_list_that_failed_shows_no_leftovers() -> None:
    assert find_leftover_runners(a_view(runners={SCOPE: Unknown("502")}), {}, PROD) == frozenset()


@pytest.mark.parametrize(
    ("first_seen", "gone"), [(None, False), (ago(0), False), (ago(29), False), (ago(30), True)]
)
def test_a_leftover_is_seen_twice_before_it_goes(first_seen: datetime | None, gone: bool) -> None:
    known = {LEFTOVER: first_seen} if first_seen else {}
    doomed = list(confirmed_leftovers(frozenset({LEFTOVER}), known, NOW))
    assert doomed == ([DeleteRunner(SCOPE, 900, NAME)] if gone else [])


SIX_HOURS = 6 * 3600


@pytest.mark.parametrize(("age", "gone"), [(SIX_HOURS - 1, False), (SIX_HOURS, True)])
@pytest.mark.parametrize("phase", [PodPhase.SUCCEEDED, PodPhase.FAILED])
def test_an_ended_pod_is_kept_for_six_hours(phase: PodPhase, age: int, gone: bool) -> None:
    pod = a_pod(phase=phase, created_at=ago(99_999), finished_at=ago(age))
    assert find_terminal_pods(a_view(pods=[pod])).effects == ((DeletePod(NAME),) if gone else ())


@pytest.mark.parametrize(
    ("pods", "more"),
    [
        ([a_pod(created_at=ago(99_999))], {}),
        ([a_pod(phase=PodPhase.PENDING, created_at=ago(99_999))], {}),
        ([a_pod(phase=PodPhase.FAILED, finished_at=ago(99_999), deleting_since=ago(1))], {}),
        ([a_pod(phase=PodPhase.FAILED, finished_at=ago(99_999))], {"ours": {}}),
        (Unknown("stale"), {}),
    ],
)
def test_live_pods_those_of_others_and_those_on_their_way_out_are_not_deleted(
    pods: Any, more: dict[str, Any]
) -> None:
    assert find_terminal_pods(a_view(pods=pods, **more)) == Decided()


FIVE_MINUTES = 300
HALF_A_MINUTE = 30


@pytest.mark.parametrize(
    ("age", "row", "lost"),
    [
        (FIVE_MINUTES, None, [NAME]),
        (FIVE_MINUTES - 1, None, []),
        (HALF_A_MINUTE, WorkerStatus.FAILED, [NAME]),
        (HALF_A_MINUTE, WorkerStatus.COMPLETED, [NAME]),
        (HALF_A_MINUTE - 1, WorkerStatus.FAILED, []),
        (FIVE_MINUTES, WorkerStatus.PENDING, []),
        (FIVE_MINUTES, WorkerStatus.RUNNING, []),
    ],
)
def test_a_secret_goes_when_no_live_row_needs_it_and_soon_when_its_row_has_ended(
    age: int, row: WorkerStatus | None, lost: list[str]
) -> None:
    rows = {NAME: row} if row is not None else {}
    assert find_lost_secrets({NAME: ago(age)}, PodView({}, 1), rows, set(), NOW) == lost


def test_a_secret_stays_while_its_pod_is_there_or_being_made() -> None:
    rows, secrets = {NAME: WorkerStatus.FAILED}, {NAME: ago(FIVE_MINUTES)}
    assert find_lost_secrets(secrets, PodView({NAME: a_pod()}, 1), rows, set(), NOW) == []
    assert find_lost_secrets(secrets, PodView({}, 1), rows, {NAME}, NOW) == []
