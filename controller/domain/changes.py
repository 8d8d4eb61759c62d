"""Decisions as values: what sync_jobs and sync_workers want done. Each is applied by one guarded statement."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from controller.domain.jobs import Scope
from controller.domain.reasons import JobFailure, Reason
from controller.domain.workers import Adopted


@dataclass(frozen=True, slots=True)
class Hear:
    """GitHub agrees with our row; ask again at `poll_at`."""

    job_id: int
    poll_at: datetime
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Start:
    """GitHub has given the job to a runner; the webhook was lost."""

    job_id: int
    runner_name: str | None
    started_at: datetime
    poll_at: datetime


@dataclass(frozen=True, slots=True)
class Complete:
    """GitHub has finished the job; the webhook was lost."""

    job_id: int
    conclusion: str | None
    runner_name: str | None
    started_at: datetime | None
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class FailJob:
    """GitHub lost the job."""

    job_id: int
    reason: JobFailure
    message: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """GitHub answered 404 once; look again before anything is concluded."""

    job_id: int
    poll_at: datetime


@dataclass(frozen=True, slots=True)
class PutOff:
    """Nothing was learnt: the row stays as it is; ask again at `poll_at`."""

    job_id: int
    poll_at: datetime


JobChange = Hear | Start | Complete | FailJob | Suspect | PutOff


@dataclass(frozen=True, slots=True)
class SeePod:
    """The worker's pod was seen: whichever of these times and places is not known yet is now."""

    name: str
    pod_at: datetime
    create_rv: int
    node: str | None
    running_at: datetime | None


@dataclass(frozen=True, slots=True)
class PodGone:
    """The worker's pod has ended or is gone: it holds neither a slot nor a place under the cap.

    `look` says that it ended well without a job that we know of: GitHub is asked before another one is made.
    """

    name: str
    at: datetime
    look: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """The worker has done its work."""

    name: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The worker ended other than well."""

    name: str
    reason: Reason
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Intend:
    """A kill is decided; it is carried out after the commit, by this leader or the next.

    It counts on the job from here on, so that demand_match does not make the next worker before the job backs off.
    """

    name: str
    reason: Reason
    own_fault: bool = False  # another pod made for the same job would end the same way


@dataclass(frozen=True, slots=True)
class ReadRunner:
    """What GitHub's runner list said of the worker's runner."""

    name: str
    at: datetime
    listed: bool
    online: bool
    busy: bool
    runner_id: int | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Adopt:
    """A live pod of ours without a row: the database was restored; make the row from the pod."""

    worker: Adopted
    pod_at: datetime
    create_rv: int


WorkerChange = SeePod | PodGone | Finish | Fail | Intend | ReadRunner | Adopt


@dataclass(frozen=True, slots=True)
class EndRunnerThenPod:
    """Carry out a kill intent: delete the runner, end the pod (or the Secret of one that was never made), mark
    the worker failed."""

    name: str
    reason: Reason
    scope: Scope
    runner_id: int | None
    pod_seen: bool
    pod_accepted: bool
    bound: bool = False  # GitHub has given it a job since its end was decided


@dataclass(frozen=True, slots=True)
class EndPod:
    """A live pod of ours whose row has ended gets the deadline, or is deleted if no kubelet has it."""

    name: str
    reason: str
    accepted: bool


@dataclass(frozen=True, slots=True)
class ForceDeletePod:
    """The pod's kubelet is gone."""

    name: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """An ended pod is past its grace."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteRunner:
    """A runner of ours without a live row."""

    scope: Scope
    runner_id: int
    name: str


@dataclass(frozen=True, slots=True)
class CollectReport:
    """A failed worker's pod is still there: keep what it can tell."""

    name: str
    last: bool = False  # what is missing now is not asked for again


@dataclass(frozen=True, slots=True)
class AskForPod:
    """The watch has not shown this worker's pod for too long: ask the API server itself."""

    name: str


@dataclass(frozen=True, slots=True)
class OwnSecret:
    """The pod of a provisioning that was cut short is there: make it the owner of its Secret."""

    name: str
    pod_uid: str


Effect = (
    EndRunnerThenPod
    | EndPod
    | ForceDeletePod
    | DeletePod
    | DeleteRunner
    | CollectReport
    | AskForPod
    | OwnSecret
)


@dataclass(frozen=True, slots=True)
class Decided:
    """What one phase of sync_workers wants: rows to change under the lock, effects for after the commit."""

    changes: tuple[WorkerChange, ...] = ()
    effects: tuple[Effect, ...] = ()
