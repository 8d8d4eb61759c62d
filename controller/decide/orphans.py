"""OrphanSweep: rows whose pod is gone, and pods whose row has ended or is lost. Pure.

Gone means: the cache has passed the resource version that the create returned and shows no pod, or the API
server itself said 404 after a minute. An unknown view ends nothing; workers that it has kept silent for more than two
heartbeats are asked for by name.
"""

from collections.abc import Iterator
from datetime import timedelta

from controller.domain.changes import (
    Adopt,
    AskForPod,
    Decided,
    Effect,
    EndPod,
    Fail,
    Finish,
    PodGone,
    WorkerChange,
)
from controller.domain.constants import CACHE_GRACE, HEARTBEAT_EVERY, SILENT_AT_ONCE, SILENT_BEATS
from controller.domain.jobs import JobStatus
from controller.domain.reasons import Reason
from controller.domain.sightings import Pod, PodView, Unknown
from controller.domain.views import View
from controller.domain.workers import Worker


def find_orphans(view: View) -> Decided:
    """Say which rows end for want of a pod, and which pods have no business any more."""
    if isinstance(view.pods, Unknown):
        return _ask_for_silent(view)
    changes: list[WorkerChange] = []
    effects: list[Effect] = []
    for worker in view.workers.values():
        if worker.name in view.pods.pods or worker.name in view.in_flight or not worker.holds_pod:
            continue
        if _gone(worker, view, view.pods):
            changes.extend(_end(worker, view))
        elif view.now - worker.created_at >= CACHE_GRACE:
            effects.append(AskForPod(worker.name))
    for name, adopted in view.ours.items():
        pod, row = view.pods.pods[name], view.workers.get(name)
        if pod.phase.ended or pod.deleting_since is not None:
            continue
        if row is not None and not row.status.live and not _ending(pod):
            effects.append(EndPod(name, row.failure_reason or "worker_ended", pod.accepted_at is not None))
        if row is None and adopted is not None:
            changes.append(Adopt(adopted, pod.created_at, pod.resource_version))
    return Decided(tuple(changes), tuple(effects))


def _ask_for_silent(view: View) -> Decided:
    """Without a view: end those for which the API server said 404, ask for those silent longest."""
    held = [w for w in view.live if w.holds_pod and w.name not in view.in_flight]
    changes = [change for worker in held if worker.name in view.absent for change in _end(worker, view)]
    silent = [
        w for w in held if w.name not in view.absent and _silence(w, view) > HEARTBEAT_EVERY * SILENT_BEATS
    ]
    silent.sort(key=lambda worker: (_silence(worker, view), worker.name), reverse=True)
    return Decided(tuple(changes), tuple(AskForPod(worker.name) for worker in silent[:SILENT_AT_ONCE]))


def _silence(worker: Worker, view: View) -> timedelta:
    return view.now - (worker.heartbeat_at or worker.created_at)


def _gone(worker: Worker, view: View, pods: PodView) -> bool:
    if worker.name in view.absent:
        return True
    return worker.create_rv is not None and pods.resource_version >= worker.create_rv


def _end(worker: Worker, view: View) -> Iterator[WorkerChange]:
    """Completed if its job has ended, else failed; an ended row only learns that its pod is gone."""
    if worker.status.live:
        if worker.ending_reason is not None:
            yield Fail(worker.name, Reason(worker.ending_reason))
        elif worker.job_status in (JobStatus.COMPLETED, JobStatus.FAILED):
            yield Finish(worker.name)
        else:
            yield Fail(worker.name, Reason.POD_MISSING)
    yield PodGone(worker.name, view.now)


def _ending(pod: Pod) -> bool:
    return pod.deadline_seconds == 1
