"""HealthChecks: which live workers are ended, and why. Pure; the first match wins.

A kill needs: no unfinished job bound in our table, and, once the container has run, a fresh runner list that says
not busy, and an earlier one at least a minute ago that said so too. GitHub's 422 on the deletion is the last guard:
the worker is left alone then, and tried again in a while.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controller.domain.changes import Decided, Effect, EndRunnerThenPod, Intend, ReadRunner, WorkerChange
from controller.domain.constants import BUSY_LAG, IMAGE_ERROR_PATIENCE, REFUSED_FIRST, REFUSED_LAST
from controller.domain.jobs import Scope
from controller.domain.reasons import Reason
from controller.domain.sightings import Pod, PodPhase, Runner, Unknown
from controller.domain.views import HealthLimits, View
from controller.domain.workers import Worker

AT_ONCE = timedelta()  # an idle runner is to get no job, or a job waits for its board or its place
HOPELESS = "InvalidImageName"
IMAGE_ERRORS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave the worker alone."""


@dataclass(frozen=True, slots=True)
class Kill:
    """End the worker."""

    reason: Reason


Verdict = Keep | Kill


def check_health(view: View) -> Decided:
    """Note what the runner lists say, decide on kills, and carry on with those decided earlier."""
    changes: list[WorkerChange] = []
    effects: list[Effect] = []
    listed = _by_name(view)
    for worker in view.live:
        reading = read_runner(worker, listed.get(worker.scope), view.now)
        if reading is not None:
            changes.append(reading)
        pod = view.pod(worker.name)
        if worker.ending_reason is not None:
            if not isinstance(view.pods, Unknown):  # whether there is a pod to end is not known then
                effects.append(_kill(worker, pod, Reason(worker.ending_reason)))
            continue
        limits = replace(view.limits, idle=AT_ONCE) if worker.name in view.ending else view.limits
        verdict = classify_worker(worker, pod, reading, limits, view.now)
        if isinstance(verdict, Kill) and not (
            _refused(worker, view.now) or _kept(worker, reading, verdict, view)
        ):
            hopeless = pod is not None and pod.waiting == HOPELESS
            changes.append(Intend(worker.name, verdict.reason, own_fault=hopeless))
            effects.append(_kill(worker, pod, verdict.reason))
    return Decided(tuple(changes), tuple(effects))


def _refused(worker: Worker, now: datetime) -> bool:
    """Whether GitHub has just called it busy; the older the worker or its job's end, the longer it is not asked."""
    if worker.refused_at is None:
        return False
    return now - worker.refused_at < _patience(worker.refused_at - (worker.job_ended_at or worker.created_at))


def _patience(age: timedelta) -> timedelta:
    return min(max(age / 4, REFUSED_FIRST), REFUSED_LAST)


def _kept(worker: Worker, reading: ReadRunner | None, verdict: Kill, view: View) -> bool:
    """Whether a warm window keeps a worker that is only idle, or may do so; one that is offline serves nobody."""
    if verdict.reason is not Reason.RUNNER_IDLE or reading is None or not reading.online:
        return False
    return view.kept is None or worker.name in view.kept


def _by_name(view: View) -> Mapping[Scope, Mapping[str, Runner]]:
    """The lists that came in, to be looked up in: a scope may have a thousand workers and as many runners."""
    return {
        scope: {runner.name: runner for runner in listed}
        for scope, listed in view.runners.items()
        if not isinstance(listed, Unknown)
    }


def read_runner(worker: Worker, listed: Mapping[str, Runner] | None, now: datetime) -> ReadRunner | None:
    """What this iteration's list of the worker's scope says of its runner; None without such a list."""
    if listed is None:
        return None
    found = listed.get(worker.name)
    if found is None:
        return ReadRunner(worker.name, now, listed=False, online=False, busy=False)
    return ReadRunner(worker.name, now, True, found.online, found.busy, found.id, found.version)


def classify_worker(
    worker: Worker, pod: Pod | None, reading: ReadRunner | None, limits: HealthLimits, now: datetime
) -> Verdict:
    """Say what the health checks do with one live worker."""
    if worker.bound or pod is None or pod.phase.ended or _leaves(pod, limits, now):
        return Keep()
    if worker.job_ended_at is not None:
        return Kill(Reason.POD_STUCK_AFTER_JOB) if now - worker.job_ended_at > limits.drain else Keep()
    if worker.job_id is not None:
        return Keep()
    if pod.phase is PodPhase.PENDING:
        return _judge_pending(pod, limits, now)
    if reading is None or reading.busy or not _quiet_long_enough(worker, now):
        return Keep()
    if pod.deleting_since is not None:
        return Kill(Reason.POD_MISSING)
    if not reading.online and worker.online_at is None:
        since = worker.running_at or pod.running_at or now
        return (
            Kill(Reason.RUNNER_NEVER_REGISTERED)
            if now - since > limits.registration_of(worker.pool)
            else Keep()
        )
    if not reading.online and worker.idle_since is not None:
        # A list that shifts while it is read may miss one, and a connection may break for a moment.
        return Keep()
    if not reading.listed:
        return Kill(Reason.RUNNER_REMOVED)
    idle_since = worker.idle_since if reading.online else _idle_before(worker)
    return Kill(Reason.RUNNER_IDLE) if idle_since and now - idle_since > limits.idle else Keep()


def _leaves(pod: Pod, limits: HealthLimits, now: datetime) -> bool:
    """Whether somebody has deleted the pod and it is about to go; a board that hangs never lets go of one."""
    return pod.deleting_since is not None and now - pod.deleting_since <= limits.drain


def _idle_before(worker: Worker) -> datetime | None:
    """Since when a runner that went offline has had no job: it idles all the same, and no job can reach it."""
    if worker.online_at is None or worker.not_busy_since is None:
        return None
    return max(worker.online_at, worker.not_busy_since)


def _quiet_long_enough(worker: Worker, now: datetime) -> bool:
    """Whether an earlier list, at least a minute ago, said not busy as well."""
    return worker.not_busy_since is not None and now - worker.not_busy_since >= BUSY_LAG


def _judge_pending(pod: Pod, limits: HealthLimits, now: datetime) -> Verdict:
    """Its container never ran, so its runner cannot be busy: no reading is needed."""
    age = now - pod.created_at
    if pod.waiting == HOPELESS or age > limits.pod_pending:
        return Kill(Reason.POD_STUCK_PENDING)
    waited = now - (pod.accepted_at or now)
    if pod.waiting in IMAGE_ERRORS and waited > IMAGE_ERROR_PATIENCE:
        return Kill(Reason.POD_STUCK_PENDING)
    return Keep()


def _kill(worker: Worker, pod: Pod | None, reason: Reason) -> EndRunnerThenPod:
    return EndRunnerThenPod(
        worker.name,
        reason,
        worker.scope,
        worker.runner_id,
        pod_seen=pod is not None,
        pod_accepted=pod is not None and pod.accepted_at is not None,
        bound=worker.bound,
    )
