"""What a webhook delivery says, once its payload was read, and what became of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controller.domain.jobs import Entity, LabelSet


class Outcome(StrEnum):
    """What became of a delivery."""

    JOB_STORED = "job_stored"
    JOB_ALREADY_EXISTS = "job_already_exists"
    JOB_MARKED_RUNNING = "job_marked_running"
    JOB_MARKED_COMPLETED = "job_marked_completed"
    JOB_NOT_FOUND = "job_not_found"
    IGNORED_ACTION = "ignored_action"
    IGNORED_NO_LABEL = "ignored_no_label"
    IGNORED_EVENT = "ignored_event"
    IGNORED_NO_APP = "ignored_no_app"
    NOT_ALLOWED = "not_allowed"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class JobNotice:
    """A `workflow_job` delivery."""

    action: str
    job_id: int
    run_id: int
    run_attempt: int
    status: str
    conclusion: str | None
    runner_name: str | None
    labels: LabelSet
    name: str
    html_url: str
    entity: Entity
    repo: str
    private: bool
    installation_id: int
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    has_deployment: bool

    @property
    def confirmed(self) -> bool:
        """Whether `queued` really means that a runner is wanted now."""
        return self.status == "queued" and not self.has_deployment


@dataclass(frozen=True, slots=True)
class InstallationNotice:
    """An `installation` or `installation_repositories` delivery."""

    event: str
    action: str
    installation_id: int
    account: str


@dataclass(frozen=True, slots=True)
class PingNotice:
    """GitHub tries the address."""


@dataclass(frozen=True, slots=True)
class OtherNotice:
    """An event that means nothing to us."""

    event: str
    action: str


Notice = JobNotice | InstallationNotice | PingNotice | OtherNotice


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery that was taken in."""

    guid: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery: who sent it, how it reached us, what it says."""

    guid: str
    app_id: str
    event: str
    source: str  # webhook | pull
    notice: Notice
