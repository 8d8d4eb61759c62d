"""PodPhaseSync: what a pod's phase says of its worker. Pure."""

from collections.abc import Iterator
from datetime import datetime

from controller.domain.changes import (
    CollectReport,
    Decided,
    Effect,
    Fail,
    Finish,
    PodGone,
    SeePod,
    WorkerChange,
)
from controller.domain.constants import EXIT_VERSION_REFUSED, NO_JOB_GRACE, REPORT_PATIENCE
from controller.domain.reasons import Reason
from controller.domain.sightings import Pod, PodPhase
from controller.domain.views import View
from controller.domain.workers import Worker


def sync_pod_phases(view: View) -> Decided:
    """Reflect Running, Succeeded and Failed onto the rows; what failed is looked into while its pod is there."""
    changes: list[WorkerChange] = []
    effects: list[Effect] = []
    for worker in view.workers.values():
        pod = view.pod(worker.name)
        if pod is None:
            continue
        if _news(worker, pod):
            running_at = _by_our_clock(pod.running_at, view.now)
            changes.append(SeePod(worker.name, pod.created_at, pod.resource_version, pod.node, running_at))
        if not pod.phase.ended:
            continue
        if worker.pod_ended_at is None:
            unexplained = pod.phase is PodPhase.SUCCEEDED and worker.job_id is None
            ended_at = _by_our_clock(pod.finished_at, view.now) or view.now
            changes.append(PodGone(worker.name, ended_at, look=unexplained))
        if worker.status.live:
            changes.extend(_ended(worker, pod, view))
    failed = {change.name for change in changes if isinstance(change, Fail)}
    for worker in view.workers.values():
        lacks_report = worker.name in failed or (
            worker.failure_reason is not None and "collected_at" not in (worker.failure_info or {})
        )
        if lacks_report and view.pod(worker.name) is not None:
            ended = worker.completed_at or view.now
            effects.append(CollectReport(worker.name, last=view.now - ended >= REPORT_PATIENCE))
    return Decided(tuple(changes), tuple(effects))


def _by_our_clock(told: datetime | None, now: datetime) -> datetime | None:
    """A time that a board has told; its clock may be ahead, and nothing is to wait for that."""
    return min(told, now) if told is not None else None


def _news(worker: Worker, pod: Pod) -> bool:
    return (
        worker.pod_at is None
        or (worker.node is None and pod.node is not None)
        or (worker.running_at is None and pod.running_at is not None)
    )


def _ended(worker: Worker, pod: Pod, view: View) -> Iterator[WorkerChange]:
    """A pod that succeeded without a job gets a minute: its `in_progress` may still be on its way."""
    if pod.phase is PodPhase.FAILED:
        yield Fail(worker.name, _reason(worker, pod), _info(pod))
    elif worker.job_id is not None:
        yield Finish(worker.name)
    elif worker.pod_ended_at is not None and view.now - worker.pod_ended_at >= NO_JOB_GRACE:
        removed = worker.online_at is not None
        yield Fail(worker.name, Reason.RUNNER_REMOVED if removed else Reason.NO_JOB_RAN, _info(pod))


def _reason(worker: Worker, pod: Pod) -> Reason:
    if worker.ending_reason is not None:
        return Reason(worker.ending_reason)
    return Reason.RUNNER_VERSION_REFUSED if pod.exit_code == EXIT_VERSION_REFUSED else Reason.POD_FAILED


def _info(pod: Pod) -> dict[str, object]:
    return {"pod_reason": pod.reason, "message": pod.message, "exit_code": pod.exit_code, "node": pod.node}
