"""Jobs, the accounts that own them, and the key by which demand meets supply."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class EntityType(StrEnum):
    """The two kinds of account; each has an App of its own."""

    ORGANIZATION = "Organization"
    USER = "User"


class JobStatus(StrEnum):
    """Forward only: pending → running → completed | failed, and pending → completed | failed."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Mark(StrEnum):
    """Why a pending job is no demand although GitHub has not ended it."""

    CANCELLED = "cancelled"
    GAVE_UP = "gave_up"


LabelSet = tuple[str, ...]


def normalise_labels(labels: Iterable[str]) -> LabelSet:
    """Bring a label set into the one form in which sets are compared: lower-case, sorted, no doubles."""
    return tuple(sorted({label.strip().lower() for label in labels}))


@dataclass(frozen=True, slots=True)
class Entity:
    """An organization or a personal account."""

    id: int
    name: str
    type: EntityType


@dataclass(frozen=True, slots=True, order=True)
class DemandKey:
    """What makes runners interchangeable: owner, labels, and for personal accounts the repository."""

    entity_id: int
    labels: LabelSet
    repo: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where runners are registered: an organization's group, or one repository of a personal account."""

    app_id: str
    installation_id: int
    entity: Entity
    repo: str | None = None  # owner/name, personal accounts only


@dataclass(frozen=True, slots=True)
class Home:
    """Where jobs come from: a repository, and the installation by which it is reached."""

    entity: Entity
    repo: str
    private: bool
    app_id: str
    installation_id: int

    @property
    def scope(self) -> Scope:
        """Where runners for its jobs are registered."""
        repo = self.repo if self.entity.type is EntityType.USER else None
        return Scope(self.app_id, self.installation_id, self.entity, repo)


@dataclass(frozen=True, slots=True)
class Job:
    """A row of `jobs`."""

    job_id: int
    entity: Entity
    repo: str
    labels: LabelSet
    status: JobStatus
    created_at: datetime
    app_id: str
    installation_id: int
    run_id: int
    seen_at: datetime
    name: str = ""
    private: bool = False
    run_attempt: int = 1
    html_url: str = ""
    pool: str | None = None
    conclusion: str | None = None
    runner_name: str | None = None
    learnt_from: str = "webhook"
    confirmed: bool = True
    allowed: bool = True
    attempts: int = 0
    retry_after: datetime | None = None
    last_failure: str | None = None
    mark: Mark | None = None
    heard_at: datetime | None = None
    poll_at: datetime | None = None
    polls: int = 0
    missing_since: datetime | None = None
    skip_reason: str | None = None
    skip_since: datetime | None = None
    skip_detail: dict[str, Any] = field(default_factory=dict)
    failure_info: dict[str, Any] | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def key(self) -> DemandKey:
        """The demand key this job belongs to."""
        return demand_key(self.entity, self.repo, self.labels)

    @property
    def home(self) -> Home:
        """Where this job comes from."""
        return Home(self.entity, self.repo, self.private, self.app_id, self.installation_id)

    @property
    def scope(self) -> Scope:
        """Where a runner for this job has to be registered."""
        return Scope(self.app_id, self.installation_id, self.entity, self.key.repo)


def demand_key(entity: Entity, repo: str | None, labels: LabelSet) -> DemandKey:
    """Build the key; runners of personal accounts are bound to a repository, so theirs names it."""
    return DemandKey(entity.id, labels, repo if entity.type is EntityType.USER else None)
