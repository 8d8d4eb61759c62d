"""OrphanSweep: rows whose pod is gone, and pods whose row has ended or is lost. Pure.

Gone means: the cache has passed the resource version that the create returned and shows no pod, or the API
server itself said 404, asked after a minute. A row that no create was noted in, and that nobody in this process
works on, was left by a provisioning that was cut short: then the API server is asked at once. A pod that runs a
job is ended by nobody, whatever its row says. An unknown view ends nothing; workers that it has kept silent for
more than two heartbeats are asked for by name.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from controller.domain.changes import (
    Adopt,
    AskForPod,
    Decided,
    Effect,
    EndPod,
    EndRunnerThenPod,
    Fail,
    Finish,
    Intend,
    OwnSecret,
    PodGone,
    WorkerChange,
)
from controller.domain.constants import (
    CACHE_GRACE,
    HEARTBEAT_EVERY,
    NO_JOB_GRACE,
    SILENT_AT_ONCE,
    SILENT_BEATS,
)
from controller.domain.jobs import JobStatus
from controller.domain.reasons import Reason
from controller.domain.sightings import Pod, PodView, Unknown
from controller.domain.views import View
from controller.domain.workers import Worker, WorkerStatus


def find_orphans(view: View) -> Decided:
    """Say which rows end for want of a pod, and which pods have no business any more."""
    if isinstance(view.pods, Unknown):
        return _ask_for_silent(view)
    changes: list[WorkerChange] = []
    effects: list[Effect] = []
    for worker in view.workers.values():
        pod = view.pods.pods.get(worker.name)
        if pod is None and worker.status.live and worker.pod_ended_at is not None:
            changes.extend(_end_late(worker, worker.pod_ended_at, view.now))
        if worker.name in view.in_flight or not worker.holds_pod:
            continue
        if pod is not None:
            if worker.create_rv is None:
                effects.append(OwnSecret(worker.name, pod.uid))
        elif _never_made(worker) and worker.ending_reason is not None:
            continue  # the kill goes on until its runner is gone
        elif not _gone(worker, view, view.pods):
            if worker.create_rv is None or view.now - worker.created_at >= CACHE_GRACE:
                effects.append(AskForPod(worker.name))
        else:
            changes.extend(_end(worker, view))
            effects.extend(_undo(worker))
    for name, adopted in view.ours.items():
        pod, row = view.pods.pods[name], view.workers.get(name)
        if pod.phase.ended or pod.deleting_since is not None:
            continue
        if row is not None and not row.status.live and not row.bound and not _ending(pod):
            effects.append(EndPod(name, row.failure_reason or "worker_ended", pod.accepted_at is not None))
        if row is None and adopted is not None:
            changes.append(Adopt(adopted, pod.created_at, pod.resource_version))
    return Decided(tuple(changes), tuple(effects))


def _ask_for_silent(view: View) -> Decided:
    """Without a view: end those for which the API server said 404, ask for those silent longest."""
    held = [w for w in view.live if w.holds_pod and w.name not in view.in_flight]
    absent = [w for w in held if w.name in view.absent]
    changes = [change for worker in absent for change in _end(worker, view)]
    undone = [effect for worker in absent for effect in _undo(worker)]
    silent = [
        w for w in held if w.name not in view.absent and _silence(w, view) > HEARTBEAT_EVERY * SILENT_BEATS
    ]
    silent.sort(key=lambda worker: (_silence(worker, view), worker.name), reverse=True)
    asked = [AskForPod(worker.name) for worker in silent[:SILENT_AT_ONCE]]
    return Decided(tuple(changes), (*undone, *asked))


def _silence(worker: Worker, view: View) -> timedelta:
    return view.now - (worker.heartbeat_at or worker.created_at)


def _gone(worker: Worker, view: View, pods: PodView) -> bool:
    if worker.name in view.absent:
        return True
    return worker.create_rv is not None and pods.resource_version >= worker.create_rv


def _never_made(worker: Worker) -> bool:
    """Whether no pod of it was ever seen: then its runner, if there is one, can have run nothing."""
    return worker.status is WorkerStatus.PENDING and worker.pod_at is None and worker.job_id is None


def _undo(worker: Worker) -> Iterator[EndRunnerThenPod]:
    """The runner and the Secret of a pod that was never made."""
    if _never_made(worker):
        yield EndRunnerThenPod(
            worker.name,
            Reason.POD_MISSING,
            worker.scope,
            worker.runner_id,
            pod_seen=False,
            pod_accepted=False,
        )


def _end(worker: Worker, view: View) -> Iterator[WorkerChange]:
    """Completed if its job has ended, else failed, once what was begun for it is undone; an ended row only learns
    that its pod is gone."""
    if _never_made(worker):
        yield Intend(worker.name, Reason.POD_MISSING)
        return
    if worker.status.live:
        if worker.ending_reason is not None:
            yield Fail(worker.name, Reason(worker.ending_reason))
        elif worker.job_status in (JobStatus.COMPLETED, JobStatus.FAILED):
            yield Finish(worker.name)
        else:
            yield Fail(worker.name, Reason.POD_MISSING)
    yield PodGone(worker.name, view.now)


def _end_late(worker: Worker, pod_ended_at: datetime, now: datetime) -> Iterator[WorkerChange]:
    """Its pod succeeded and was deleted while GitHub's word of its job was still awaited: it ends as it would have."""
    if worker.ending_reason is not None:
        return  # the kill ends it
    if worker.job_id is not None:
        yield Finish(worker.name)
    elif now - pod_ended_at >= NO_JOB_GRACE:
        removed = worker.online_at is not None
        yield Fail(worker.name, Reason.RUNNER_REMOVED if removed else Reason.NO_JOB_RAN)


def _ending(pod: Pod) -> bool:
    return pod.deadline_seconds == 1
