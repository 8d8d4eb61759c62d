"""What a pod's phase says of its worker."""

from typing import Any

import pytest

from controller.decide.pod_phase import sync_pod_phases
from controller.domain.changes import CollectReport, Decided, Fail, Finish, PodGone, SeePod
from controller.domain.reasons import Reason
from controller.domain.sightings import PodPhase, Unknown
from controller.domain.workers import WorkerStatus
from tests.unit.decide.builders import NAME, a_pod, a_view, a_worker, ago

KNOWN: dict[str, Any] = {"node": "board-1", "running_at": ago(290)}


def test_a_running_pod_makes_its_worker_running() -> None:
    worker = a_worker(status=WorkerStatus.PENDING, pod_at=None)
    assert sync_pod_phases(a_view([worker], [a_pod()])).changes == (
        SeePod(NAME, ago(300), 10, "board-1", ago(290)),
    )


@pytest.mark.parametrize(
    ("known", "pod"),
    [
        ({"pod_at": None}, a_pod(node=None, running_at=None)),
        ({"node": None}, a_pod(running_at=None)),
        ({"node": "board-1"}, a_pod()),
    ],
)
def test_each_thing_that_becomes_known_is_written_once(known: dict[str, Any], pod: Any) -> None:
    (change,) = sync_pod_phases(a_view([a_worker(**known)], [pod])).changes
    assert isinstance(change, SeePod)


def test_nothing_new_writes_nothing() -> None:
    assert sync_pod_phases(a_view([a_worker(**KNOWN)], [a_pod()])) == Decided()
    assert sync_pod_phases(a_view([a_worker(**KNOWN)], Unknown("stale"))) == Decided()
    assert sync_pod_phases(a_view([a_worker(**KNOWN)], [])) == Decided()


def test_a_pod_that_succeeded_after_its_job_completes_the_worker() -> None:
    worker = a_worker(job_id=1, **KNOWN)
    pod = a_pod(phase=PodPhase.SUCCEEDED, finished_at=ago(3))
    assert sync_pod_phases(a_view([worker], [pod])) == Decided((PodGone(NAME, ago(3)), Finish(NAME)))


@pytest.mark.parametrize(
    ("since", "online", "reason"),
    [
        (89, False, None),
        (90, False, Reason.NO_JOB_RAN),
        (89, True, None),
        (90, True, Reason.RUNNER_REMOVED),
    ],
)
def test_a_pod_that_succeeded_without_a_job_gets_time_for_its_word_to_be_pulled(
    since: int, online: bool, reason: Reason | None
) -> None:
    worker = a_worker(pod_ended_at=ago(since), online_at=ago(200) if online else None, **KNOWN)
    pod = a_pod(phase=PodPhase.SUCCEEDED, finished_at=ago(since))
    changes = sync_pod_phases(a_view([worker], [pod])).changes
    assert [each.reason for each in changes if isinstance(each, Fail)] == ([reason] if reason else [])


def test_a_board_whose_clock_is_ahead_keeps_nobody_waiting_for_its_time() -> None:
    pod = a_pod(phase=PodPhase.SUCCEEDED, running_at=ago(-3000), finished_at=ago(-3600))
    changes = sync_pod_phases(a_view([a_worker(pod_at=None)], [pod])).changes
    assert [each.running_at for each in changes if isinstance(each, SeePod)] == [ago(0)]
    assert [each.at for each in changes if isinstance(each, PodGone)] == [ago(0)]


def test_a_board_whose_clock_is_behind_costs_nobody_the_time_for_a_late_word() -> None:
    pod = a_pod(phase=PodPhase.SUCCEEDED, finished_at=ago(3600))
    changes = sync_pod_phases(a_view([a_worker(**KNOWN)], [pod])).changes
    assert not [each for each in changes if isinstance(each, Fail)]


def test_a_pod_that_does_not_say_when_it_ended_has_just_ended() -> None:
    changes = sync_pod_phases(a_view([a_worker(**KNOWN)], [a_pod(phase=PodPhase.FAILED)])).changes
    assert [each.at for each in changes if isinstance(each, PodGone)] == [ago(0)]


def test_an_end_without_a_job_has_github_asked_at_once() -> None:
    pod = a_pod(phase=PodPhase.SUCCEEDED, finished_at=ago(1))
    assert sync_pod_phases(a_view([a_worker(**KNOWN)], [pod])).changes == (PodGone(NAME, ago(1), look=True),)


@pytest.mark.parametrize(
    ("worker", "exit_code", "reason"),
    [
        ({}, 1, Reason.POD_FAILED),
        ({}, None, Reason.POD_FAILED),
        ({}, 7, Reason.RUNNER_VERSION_REFUSED),
        ({"job_id": 1}, 1, Reason.POD_FAILED),
        ({"ending_reason": "runner_never_registered"}, None, Reason.RUNNER_NEVER_REGISTERED),
    ],
)
def test_a_failed_pod_fails_its_worker_with_what_it_says(
    worker: dict[str, Any], exit_code: int | None, reason: Reason
) -> None:
    pod = a_pod(
        phase=PodPhase.FAILED, finished_at=ago(2), reason="Error", message="boom", exit_code=exit_code
    )
    decided = sync_pod_phases(a_view([a_worker(**worker, **KNOWN)], [pod]))
    info = {"pod_reason": "Error", "message": "boom", "exit_code": exit_code, "node": "board-1"}
    assert decided.changes == (PodGone(NAME, ago(2)), Fail(NAME, reason, info))
    assert decided.effects == (CollectReport(NAME),)


@pytest.mark.parametrize(
    ("info", "collected"), [(None, True), ({"message": "boom"}, True), ({"collected_at": "now"}, False)]
)
def test_a_report_is_collected_until_it_is_kept(info: dict[str, Any] | None, collected: bool) -> None:
    worker = a_worker(
        status=WorkerStatus.FAILED,
        failure_reason="pod_failed",
        failure_info=info,
        pod_ended_at=ago(1),
        **KNOWN,
    )
    decided = sync_pod_phases(a_view([worker], [a_pod(phase=PodPhase.FAILED)]))
    assert decided.effects == ((CollectReport(NAME),) if collected else ())
    assert decided.changes == ()


@pytest.mark.parametrize(("age", "last"), [(299, False), (300, True)])
def test_what_a_failed_pod_could_not_be_asked_is_asked_again_for_five_minutes(age: int, last: bool) -> None:
    worker = a_worker(
        status=WorkerStatus.FAILED,
        failure_reason="pod_failed",
        completed_at=ago(age),
        pod_ended_at=ago(age),
        **KNOWN,
    )
    decided = sync_pod_phases(a_view([worker], [a_pod(phase=PodPhase.FAILED)]))
    assert decided.effects == (CollectReport(NAME, last=last),)


def test_a_row_that_has_ended_stays_as_it_is() -> None:
    worker = a_worker(status=WorkerStatus.COMPLETED, **KNOWN)
    pod = a_pod(phase=PodPhase.FAILED, finished_at=ago(2))
    assert sync_pod_phases(a_view([worker], [pod])) == Decided((PodGone(NAME, ago(2)),))


def test_a_kill_begun_by_a_newer_program_ends_its_worker_all_the_same() -> None:
    worker = a_worker(ending_reason="from_the_future", **KNOWN)
    decided = sync_pod_phases(a_view([worker], [a_pod(phase=PodPhase.FAILED, finished_at=ago(2))]))
    assert [change.reason for change in decided.changes if isinstance(change, Fail)] == [Reason.UNFAMILIAR]
