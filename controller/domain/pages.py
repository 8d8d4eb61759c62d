"""What the pages ask for and what they get: filters, a slice of rows, and the rows that are not jobs or workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from controller.domain.jobs import Entity, Job, JobStatus, LabelSet
from controller.domain.workers import Worker, WorkerStatus

Row = TypeVar("Row")

EVER_SINCE = datetime(1970, 1, 1, tzinfo=UTC)
FOR_EVER = datetime(9999, 1, 1, tzinfo=UTC)
MANY_FAILURES = 5  # of workers, within half an hour
TEXT_REACH = 20_000  # text has no index: it is looked for in so many of the newest jobs of each status


@dataclass(frozen=True, slots=True)
class Window:
    """From `start` on and before `end`."""

    start: datetime = EVER_SINCE
    end: datetime = FOR_EVER


@dataclass(frozen=True, slots=True)
class Slice:
    """Which rows of a list: `page` counts from 1."""

    page: int = 1
    per_page: int = 100

    @property
    def offset(self) -> int:
        """How many rows come before it."""
        return (self.page - 1) * self.per_page


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    """The rows of one slice, and whether more follow."""

    rows: tuple[Row, ...]
    more: bool

    @classmethod
    def cut(cls, rows: Sequence[Row], limit: int) -> "Listing[Row]":
        """Make a listing from rows of which one more than wanted was asked for."""
        return cls(tuple(rows[:limit]), len(rows) > limit)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; empty means all."""

    statuses: tuple[JobStatus, ...] = ()
    entity: str | None = None  # a login in any case, or an id
    run_id: int | None = None
    window: Window = Window()
    repo: str | None = None  # owner/name in any case
    label: str | None = None
    text: str | None = None  # in the name of the job, its repository or its owner
    pool: str | None = None
    failed_since: datetime | None = None  # lost since then
    lost_since: datetime | None = None  # of those that were lost only the ones queued since then
    sees_private: bool = False  # else private repositories are not found by what is not shown of them


@dataclass(frozen=True, slots=True)
class WorkerFilter:
    """Which workers; empty means all."""

    statuses: tuple[WorkerStatus, ...] = ()
    window: Window = Window()
    pool: str | None = None
    node: str | None = None
    failed_since: datetime | None = None  # ended since then, and not harmlessly


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Demand and supply of one key: (entity, labels), for personal accounts with the repository."""

    entity: Entity
    labels: LabelSet
    repo: str | None
    private: bool
    pools: tuple[str, ...]
    jobs_pending: int
    jobs_running: int
    workers_pending: int
    workers_running: int
    oldest_at: datetime | None  # when the oldest pending job was queued

    @property
    def demand(self) -> int:
        """Jobs that want a runner or have one."""
        return self.jobs_pending + self.jobs_running

    @property
    def supply(self) -> int:
        """Workers that are alive."""
        return self.workers_pending + self.workers_running

    @property
    def deficit(self) -> int:
        """How many workers are missing; negative when there are spare ones."""
        return self.demand - self.supply


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker, and whether anything about it belongs to a private repository."""

    worker: Worker
    private: bool


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A board and what is on it."""

    node: str
    board: str | None  # value of the board label
    state: str
    slots: int
    free: int  # of these slots
    heartbeat_at: datetime
    updated_at: datetime
    worker: str | None = None
    worker_status: WorkerStatus | None = None
    entity_name: str | None = None
    job_id: int | None = None
    job_name: str | None = None
    job_started_at: datetime | None = None
    repo: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class BoardTally:
    """How many boards of one type are in one state; None: they carry no board label."""

    board: str | None
    state: str
    boards: int
    slots: int = 0
    free: int = 0  # of these slots


@dataclass(frozen=True, slots=True)
class HoldRow:
    """A pool, entity or board that gets nothing new for now."""

    scope: str
    target: str
    why: str
    until: datetime | None
    note: str
    who: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """Something that happened."""

    at: datetime
    source: str
    kind: str
    outcome: str | None
    job_id: int | None
    worker: str | None
    who: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ahead:
    """What one entity has waiting for boards of a type: in all, and queued before a certain job."""

    entity: Entity
    waiting: int
    earlier: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How quickly boards of a type work: those that can, and how their last jobs went."""

    slots: int
    finished: int  # how many jobs the medians are taken from
    board_time: timedelta | None  # half of their workers took a board for less
    start_time: timedelta | None  # from reserving a worker to the start of its job


@dataclass(frozen=True, slots=True)
class Turn:
    """What says when a waiting job's turn comes."""

    queue: tuple[Ahead, ...]
    pace: Pace


@dataclass(frozen=True, slots=True)
class JobStory:
    """One job with all that happened to it; `job` is None when it was ignored and only events tell of it."""

    job: Job | None
    events: tuple[EventRow, ...]
    workers: tuple[WorkerRow, ...]  # made for it or bound to it


@dataclass(frozen=True, slots=True)
class WorkerStory:
    """One worker with all that happened to it."""

    row: WorkerRow
    events: tuple[EventRow, ...]
    job: Job | None  # the one that GitHub gave it


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How much waits, runs and failed."""

    jobs_pending: int
    jobs_running: int
    workers_pending: int
    workers_running: int
    workers_failed_today: int  # without harmless endings, as everywhere
    workers_failed_lately: int  # in the last half hour
    workers_failed_before: int  # in the half hour before that
    jobs_lost_today: int
    oldest_at: datetime | None  # of those that are still to get a runner

    @property
    def failures_rise(self) -> bool:
        """Whether it gets worse, as the alert SwitchboardWorkersFail has it."""
        return (
            self.workers_failed_lately > MANY_FAILURES
            and self.workers_failed_lately > 2 * self.workers_failed_before
        )


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Pending jobs of one pool that wait for one reason; None: no decision about them is stored."""

    pool: str | None
    reason: str | None
    unjudged: bool  # without a reason for longer than iterations take; else they are about to start
    jobs: int
    oldest_at: datetime | None  # None: all of them were cancelled or given up


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads or led last, by its own name, and since when."""

    holder: str
    since: datetime
    present: bool  # it holds the lock right now
    worked_at: datetime | None  # when any leader last saw the boards and wrote that down


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole installation at a glance."""

    counts: QueueCounts
    boards: Listing[BoardRow]
    holds: tuple[HoldRow, ...]
    waiting: tuple[Job, ...]  # the oldest
    failures: tuple[WorkerRow, ...]  # the newest of today
    tallies: tuple[BoardTally, ...]  # of all boards, however many rows are shown
    queue: tuple[WaitingGroup, ...] = ()
    leader: Leader | None = None
