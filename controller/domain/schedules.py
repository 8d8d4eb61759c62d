"""Schedules and their occurrences: what is done at which times, and what became of each time.

An occurrence is a queue row, `pending → running → completed | failed`, or `skipped` or `missed` from the start; it is
unique on (schedule, due time). A `warm` one is `running` for as long as its window is open.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Any

from controller.domain.jobs import DemandKey, LabelSet, Scope, demand_key


class ScheduleType(StrEnum):
    """What a `spec` means."""

    CRON = "cron"
    INTERVAL = "interval"
    ONE_SHOT = "one_shot"


class Action(StrEnum):
    """What an occurrence does."""

    WARM = "warm"
    DISPATCH = "dispatch"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    PRUNE = "prune"

    @property
    def outside(self) -> bool:
        """Whether it needs more than the transaction that fires it."""
        return self in (Action.WARM, Action.DISPATCH, Action.PRUNE)


class CatchUp(StrEnum):
    """What is done about times that were missed."""

    SKIP = "skip"
    RUN_ONCE = "run_once"
    RUN_ALL_CAPPED = "run_all_capped"


class OccurrenceStatus(StrEnum):
    """Forward only, but for a retry by hand: failed → pending."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    MISSED = "missed"

    @property
    def open(self) -> bool:
        """Whether something is still to be done."""
        return self in (OccurrenceStatus.PENDING, OccurrenceStatus.RUNNING)


class ScheduleSkip(StrEnum):
    """Why a due schedule does nothing."""

    DISABLED = "disabled"
    CANCELLED = "cancelled"
    ALREADY_RUNNING = "already_running"
    AT_CAPACITY = "at_capacity"
    NOT_DUE = "not_due"
    QUIET_HOURS = "quiet_hours"
    UNSUPPORTED_TYPE = "unsupported_type"


SKIP_SENTENCES: Mapping[ScheduleSkip, str] = {
    ScheduleSkip.DISABLED: "The schedule is disabled; enable it to let it run.",
    ScheduleSkip.CANCELLED: "Somebody cancelled it before it began; the next time comes as planned.",
    ScheduleSkip.ALREADY_RUNNING: "The run before was still under way; the next time comes as planned.",
    ScheduleSkip.AT_CAPACITY: "Too many runs of schedules wait or run already; the next time comes as planned.",
    ScheduleSkip.NOT_DUE: "Its time has not come yet.",
    ScheduleSkip.QUIET_HOURS: "It lies in the schedule's quiet hours, and is not made up for.",
    ScheduleSkip.UNSUPPORTED_TYPE: "This version does not know this type of schedule; update it, or change the type.",
}


class Owner(StrEnum):
    """Who says what a schedule is."""

    FILE = "file"
    API = "api"


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From one wall-clock time to another, every day; they may wrap midnight."""

    start: time
    end: time
    timezone: str


@dataclass(frozen=True, slots=True)
class Definition:
    """What a schedule is, as its owner wrote it. `arguments` is the file's `with`, checked for its action."""

    name: str
    type: str  # a ScheduleType, unless a newer program wrote the row
    spec: str
    action: Action
    arguments: Mapping[str, Any] = field(default_factory=dict)
    timezone: str = "UTC"
    catch_up: CatchUp = CatchUp.SKIP
    catch_up_cap: int = 1
    quiet_hours: QuietHours | None = None
    jitter: int = 0  # per cent of the time between two occurrences
    priority: int = 10  # 1 to 10: of the occurrences that wait the highest comes first
    enabled: bool = True


def window_end(arguments: Mapping[str, Any], due: datetime) -> datetime | None:
    """When what an occurrence does is over, counted from its due time; None: not by itself."""
    seconds = arguments.get("for")
    return due + timedelta(seconds=seconds) if seconds is not None else None


@dataclass(frozen=True, slots=True)
class Planned:
    """The next time: `due` is the time itself and part of the key, `run_at` has the jitter added."""

    due: datetime
    run_at: datetime


@dataclass(frozen=True, slots=True)
class Schedule:
    """A row of `schedules`."""

    definition: Definition
    owner: Owner
    enabled: bool
    planned: Planned | None = None
    last_run_at: datetime | None = None
    last_error: str | None = None
    in_file: bool = False  # one that was removed from the file stays, disabled

    @property
    def name(self) -> str:
        """Its name."""
        return self.definition.name


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A row of `occurrences`."""

    id: int
    schedule: str
    due_at: datetime
    action: Action
    arguments: Mapping[str, Any]
    status: OccurrenceStatus
    created_at: datetime
    reason: str | None = None
    manual: bool = False
    caught_up: bool = False  # one of several that `run_all_capped` makes good: it waits for the one before
    slots: int = 1  # how many times it stands for
    attempts: int = 0
    max_attempts: int = 3
    retry_after: datetime | None = None
    leased_until: datetime | None = None
    sent_at: datetime | None = None  # the first request whose answer we may not have had
    last_sent_at: datetime | None = None
    runs_before: Collection[int] = (
        frozenset()
    )  # what GitHub listed before the first request: none of it is ours
    run_id: int | None = None
    run_ended_at: datetime | None = None
    warm_until: datetime | None = None
    result: str | None = None
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Floor:
    """A warm window, open or ended moments ago: so many spare runners for these labels until then."""

    occurrence: int
    schedule: str
    scope: Scope
    labels: LabelSet
    runners: int
    until: datetime
    failures: int = 0  # spare runners in a row that ended without a job
    failed_at: datetime | None = None
    removed: bool = False  # the last one was removed by GitHub as idle: an ending, not a fault

    @property
    def key(self) -> DemandKey:
        """The demand that the spare runners serve."""
        return demand_key(self.scope.entity, self.scope.repo, self.labels)


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A workflow run that a dispatch started."""

    run_id: int
    html_url: str
    workflow: str = ""  # path of its file in the repository
    workflow_id: int | None = None
    actor: str | None = None  # the login of who started it; None: GitHub does not say


@dataclass(frozen=True, slots=True)
class Agenda:
    """When what is due next, as the rows say; None: nothing of the kind."""

    schedule: datetime | None = None
    occurrence: datetime | None = None
    window: datetime | None = None  # a warm window ends
    lease: datetime | None = None  # a lease runs out

    @property
    def next(self) -> datetime | None:
        """What the loop must wake for; leases are looked at every few minutes."""
        return min((at for at in (self.schedule, self.occurrence, self.window) if at), default=None)


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule as people look at it, with its newest occurrence."""

    schedule: Schedule
    last: Occurrence | None

    @property
    def status(self) -> str:
        """`disabled`, `running` while an occurrence is under way, else `idle`."""
        if not self.schedule.enabled:
            return "disabled"
        return "running" if self.last is not None and self.last.status.open else "idle"
