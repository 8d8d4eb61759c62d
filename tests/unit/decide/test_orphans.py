"""Rows without a pod, and pods without business."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.orphans import find_orphans
from controller.domain.changes import (
    Adopt,
    AskForPod,
    Decided,
    EndPod,
    EndRunnerThenPod,
    Fail,
    Finish,
    Intend,
    OwnSecret,
    PodGone,
    WorkerChange,
)
from controller.domain.jobs import JobStatus
from controller.domain.reasons import Reason
from controller.domain.sightings import PodPhase, Unknown
from controller.domain.workers import Adopted, Worker, WorkerStatus
from tests.unit.decide.builders import ACME, NAME, NOW, a_pod, a_view, a_worker, ago

SEEN_UP_TO = 100  # the view's resource version
ENDED: dict[str, Any] = {"status": WorkerStatus.FAILED, "failure_reason": "pod_failed"}
NEVER_SEEN: dict[str, Any] = {"status": WorkerStatus.PENDING, "pod_at": None}


@given(st.lists(st.sampled_from(list(WorkerStatus)), max_size=20))
def test_an_unknown_pod_list_never_orphans_the_fleet(statuses: list[WorkerStatus]) -> None:
    fleet = [a_worker(f"w-{number}", status=status) for number, status in enumerate(statuses)]
    assert find_orphans(a_view(fleet, Unknown("the watch is stale"))).changes == ()


@pytest.mark.parametrize(("create_rv", "gone"), [(SEEN_UP_TO, True), (SEEN_UP_TO + 1, False)])
def test_a_new_worker_is_not_orphaned_before_the_watch_has_passed_its_pod(create_rv: int, gone: bool) -> None:
    worker = a_worker(create_rv=create_rv, created_at=ago(59))
    expected = Decided((Fail(NAME, Reason.POD_MISSING), PodGone(NAME, NOW))) if gone else Decided()
    assert find_orphans(a_view([worker])) == expected


@pytest.mark.parametrize(("age", "asked"), [(59, ()), (60, (AskForPod(NAME),))])
def test_after_a_minute_the_api_server_itself_is_asked(age: int, asked: tuple[AskForPod, ...]) -> None:
    worker = a_worker(create_rv=SEEN_UP_TO + 1, created_at=ago(age), status=WorkerStatus.PENDING)
    assert find_orphans(a_view([worker])) == Decided(effects=asked)


def test_a_404_of_the_api_server_is_believed() -> None:
    worker = a_worker(create_rv=SEEN_UP_TO + 1, status=WorkerStatus.PENDING)
    decided = find_orphans(a_view([worker], absent=frozenset({NAME})))
    assert decided.changes == (Fail(NAME, Reason.POD_MISSING), PodGone(NAME, NOW))


def test_a_provisioning_that_was_cut_short_is_asked_for_at_once_and_then_undone() -> None:
    worker = a_worker(create_rv=None, pod_at=None, created_at=NOW, status=WorkerStatus.PENDING)
    assert find_orphans(a_view([worker])) == Decided(effects=(AskForPod(NAME),))
    undo = EndRunnerThenPod(
        NAME, Reason.POD_MISSING, worker.scope, worker.runner_id, pod_seen=False, pod_accepted=False
    )
    intent = Decided((Intend(NAME, Reason.POD_MISSING),), (undo,))
    assert find_orphans(a_view([worker], absent=frozenset({NAME}))) == intent


def test_while_such_a_one_is_being_undone_nothing_else_is_decided_on_it() -> None:
    worker = a_worker(create_rv=None, pod_at=None, status=WorkerStatus.PENDING, ending_reason="pod_missing")
    assert find_orphans(a_view([worker], absent=frozenset({NAME}))) == Decided()


def test_a_pod_that_its_row_does_not_know_of_yet_is_made_the_owner_of_its_secret() -> None:
    worker, pod = a_worker(create_rv=None, pod_at=None, status=WorkerStatus.PENDING), a_pod()
    assert find_orphans(a_view([worker], [pod])) == Decided(effects=(OwnSecret(NAME, pod.uid),))
    assert find_orphans(a_view([worker], [pod], in_flight=frozenset({NAME}))) == Decided()


def test_a_worker_that_is_being_provisioned_is_left_alone() -> None:
    worker = a_worker(create_rv=None, pod_at=None, created_at=ago(999), status=WorkerStatus.PENDING)
    assert find_orphans(a_view([worker], in_flight=frozenset({NAME}))) == Decided()


@pytest.mark.parametrize(
    ("worker", "end"),
    [
        (a_worker(job_id=1, job_status=JobStatus.COMPLETED), Finish(NAME)),
        (a_worker(job_id=1, job_status=JobStatus.FAILED), Finish(NAME)),
        (a_worker(job_id=1, job_status=JobStatus.RUNNING), Fail(NAME, Reason.POD_MISSING)),
        (a_worker(), Fail(NAME, Reason.POD_MISSING)),
        (a_worker(ending_reason="runner_idle"), Fail(NAME, Reason.RUNNER_IDLE)),
        (a_worker(**NEVER_SEEN, job_id=1, job_status=JobStatus.COMPLETED), Finish(NAME)),
    ],
)
def test_a_row_without_a_pod_ends_as_its_job_did(worker: Worker, end: Fail | Finish) -> None:
    assert find_orphans(a_view([worker])).changes == (end, PodGone(NAME, NOW))


def test_an_ended_row_only_learns_that_its_pod_is_gone() -> None:
    assert find_orphans(a_view([a_worker(**ENDED)])).changes == (PodGone(NAME, NOW),)
    assert find_orphans(a_view([a_worker(**ENDED, pod_ended_at=ago(9))])) == Decided()


def test_a_row_whose_pod_is_there_is_no_orphan() -> None:
    assert find_orphans(a_view([a_worker()], [a_pod()])) == Decided()


@pytest.mark.parametrize("accepted", [True, False])
def test_a_live_pod_whose_row_has_ended_is_ended(accepted: bool) -> None:
    pod = a_pod(accepted_at=ago(9) if accepted else None)
    assert find_orphans(a_view([a_worker(**ENDED)], [pod])).effects == (EndPod(NAME, "pod_failed", accepted),)


@pytest.mark.parametrize(
    ("status", "effects"),
    [(JobStatus.RUNNING, ()), (JobStatus.COMPLETED, (EndPod(NAME, "pod_failed", True),))],
)
def test_a_pod_that_runs_a_job_is_left_alone_although_its_row_has_ended(
    status: JobStatus, effects: tuple[EndPod, ...]
) -> None:
    worker = a_worker(**ENDED, job_id=5, job_status=status)
    assert find_orphans(a_view([worker], [a_pod()])).effects == effects


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(deadline_seconds=1),
        a_pod(deleting_since=ago(1)),
        a_pod(phase=PodPhase.SUCCEEDED),
        a_pod(phase=PodPhase.FAILED),
    ],
)
def test_a_pod_that_is_ending_already_is_not_ended_twice(pod: Any) -> None:
    assert find_orphans(a_view([a_worker(**ENDED)], [pod])) == Decided()


def test_a_live_pod_of_ours_without_a_row_is_adopted() -> None:
    adopted = Adopted(NAME, ACME, "111", 31, ("x",), "x", "image", None, 900)
    pod = a_pod()
    decided = find_orphans(a_view([], [pod], ours={NAME: adopted}))
    assert decided == Decided((Adopt(adopted, pod.created_at, pod.resource_version),))
    ended = a_pod(phase=PodPhase.SUCCEEDED)
    assert find_orphans(a_view([], [ended], ours={NAME: adopted})) == Decided()


def test_a_pod_that_does_not_say_whose_it_is_is_left_alone() -> None:
    assert find_orphans(a_view([], [a_pod()], ours={NAME: None})) == Decided()


def test_pods_that_are_not_ours_are_not_looked_at() -> None:
    assert find_orphans(a_view([], [a_pod("postgres-0")], ours={})) == Decided()


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"job_id": 5, "job_status": JobStatus.COMPLETED}, (Finish(NAME),)),
        ({"job_id": 5, "job_status": JobStatus.RUNNING}, (Finish(NAME),)),
        ({"pod_ended_at": ago(89)}, ()),
        ({}, (Fail(NAME, Reason.NO_JOB_RAN),)),
        ({"online_at": ago(90)}, (Fail(NAME, Reason.RUNNER_REMOVED),)),
        ({"ending_reason": "runner_idle"}, ()),
    ],
)
def test_a_row_whose_ended_pod_was_deleted_before_it_ended_does_not_live_for_ever(
    fields: dict[str, Any], changes: tuple[WorkerChange, ...]
) -> None:
    worker = a_worker(**{"pod_at": ago(100), "running_at": ago(99), "pod_ended_at": ago(90), **fields})
    assert find_orphans(a_view([worker])).changes == changes
