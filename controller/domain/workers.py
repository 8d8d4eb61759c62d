"""Workers: one row per runner ever reserved. Worker name = pod name = runner name."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from controller.domain.jobs import DemandKey, Entity, JobStatus, LabelSet, Scope, demand_key

NAME_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
NAME_SUFFIX_LENGTH = 9


class WorkerStatus(StrEnum):
    """Forward only: pending → running → completed | failed."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def live(self) -> bool:
        """Whether the worker has not ended."""
        return self in (WorkerStatus.PENDING, WorkerStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class NameRule:
    """How this environment names its runners, and so which runners and pods are ours."""

    stem: str  # prefix, and the environment unless it is prod

    @classmethod
    def of(cls, prefix: str, environment: str) -> "NameRule":
        """The rule of one environment."""
        return cls(prefix if environment == "prod" else f"{prefix}-{environment}")

    def name(self, suffix: str) -> str:
        """The full name for a random suffix."""
        return f"{self.stem}-{suffix}"

    def ours(self, name: str) -> bool:
        """Whether the whole name is one of this environment's; another environment's prefix is not enough."""
        return re.fullmatch(rf"{re.escape(self.stem)}-[a-z0-9]{{{NAME_SUFFIX_LENGTH}}}", name) is not None


@dataclass(frozen=True, slots=True)
class Adopted:
    """What a pod says of the worker it is."""

    name: str
    entity: Entity
    app_id: str
    installation_id: int
    labels: LabelSet
    pool: str
    image: str
    repo: str | None
    runner_id: int | None


@dataclass(frozen=True, slots=True)
class Worker:
    """A row of `workers`, with the job that GitHub bound to it (from `jobs.runner_name`)."""

    name: str
    entity: Entity
    app_id: str
    installation_id: int
    labels: LabelSet
    pool: str
    image: str
    status: WorkerStatus
    created_at: datetime
    repo: str | None = None
    made_for: int | None = None  # the job whose turn it was when this worker was reserved; not a binding
    warm_for: int | None = None  # the warm window that it was made for as a spare runner
    node: str | None = None
    group_id: int | None = None
    runner_id: int | None = None
    runner_version: str | None = None
    ending_reason: str | None = None
    ending_since: datetime | None = None  # without a reason: when GitHub last refused its end
    online_at: datetime | None = None
    idle_since: datetime | None = None
    not_busy_since: datetime | None = None
    busy_since: datetime | None = None
    read_at: datetime | None = None
    heartbeat_at: datetime | None = None
    create_rv: int | None = None
    jit_at: datetime | None = None
    pod_at: datetime | None = None
    running_at: datetime | None = None
    pod_ended_at: datetime | None = None
    completed_at: datetime | None = None
    failure_reason: str | None = None
    failure_info: dict[str, Any] | None = None
    job_id: int | None = None
    job_status: JobStatus | None = None
    job_started_at: datetime | None = None
    job_ended_at: datetime | None = None

    @property
    def key(self) -> DemandKey:
        """The demand key this worker supplies."""
        return demand_key(self.entity, self.repo, self.labels)

    @property
    def scope(self) -> Scope:
        """Where this worker's runner is registered."""
        return Scope(self.app_id, self.installation_id, self.entity, self.key.repo)

    @property
    def bound(self) -> bool:
        """Whether GitHub gave it a job that has not ended."""
        return self.job_status is JobStatus.RUNNING

    @property
    def refused_at(self) -> datetime | None:
        """When GitHub last called it busy though its end was decided."""
        return self.ending_since if self.ending_reason is None else None

    @property
    def holds_pod(self) -> bool:
        """Whether its pod, seen or on its way, still takes a board."""
        return self.pod_ended_at is None and (self.status.live or self.pod_at is not None)

    @property
    def free(self) -> bool:
        """Whether GitHub may still give it a job, or has and we have not heard: alive, not ending, unbound.

        A live worker whose pod has ended is one that succeeded moments ago: `in_progress` is late or lost.
        """
        return self.status.live and self.ending_reason is None and self.job_id is None

    @property
    def unproven(self) -> bool:
        """Whether it has yet to show that its image and board work."""
        return self.free and self.online_at is None

    @property
    def unregistered(self) -> bool:
        """Whether its JIT call is still to come."""
        return self.jit_at is None and self.runner_id is None and self.pod_at is None
