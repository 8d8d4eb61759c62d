"""What charts are drawn from: a span of time in equal buckets, and what was measured in each."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Span(StrEnum):
    """How far back a chart goes."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"

    @property
    def buckets(self) -> int:
        """Into how many parts it is cut."""
        return {Span.HOUR: 60, Span.DAY: 96, Span.WEEK: 84}[self]

    @property
    def bucket(self) -> timedelta:
        """How long one part is."""
        return {
            Span.HOUR: timedelta(minutes=1),
            Span.DAY: timedelta(minutes=15),
            Span.WEEK: timedelta(hours=2),
        }[self]

    def start(self, now: datetime) -> datetime:
        """Where the first part begins: the last one is the one that `now` lies in, and buckets lie on even times."""
        seconds = int(self.bucket.total_seconds())
        current = int(now.timestamp()) // seconds * seconds
        return datetime.fromtimestamp(current, UTC) - self.bucket * (self.buckets - 1)


@dataclass(frozen=True, slots=True)
class PoolPoint:
    """A pool in one bucket, by its snapshots."""

    pool: str
    bucket: int
    queue_depth: int  # the most that waited at once
    utilisation: float | None  # mean of busy of all slots, 0 to 1; None: it had none


@dataclass(frozen=True, slots=True)
class WaitPoint:
    """How long the jobs of one pool that started in one bucket had waited."""

    pool: str
    bucket: int
    jobs: int
    median: timedelta
    slow: timedelta  # 95 % waited less


@dataclass(frozen=True, slots=True)
class FailurePoint:
    """Workers that failed in one bucket for one reason."""

    bucket: int
    reason: str
    workers: int


@dataclass(frozen=True, slots=True)
class Charts:
    """All that the charts of one span show."""

    span: Span
    start: datetime
    pools: tuple[PoolPoint, ...] = ()
    waits: tuple[WaitPoint, ...] = ()
    failures: tuple[FailurePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class BoardDay:
    """A board over the last 24 hours: how busy in each bucket (0 to 1), and how its workers ended."""

    node: str
    busy: tuple[float, ...]
    ended: int = 0
    failed: int = 0

    @property
    def utilisation(self) -> float:
        """The share of the day that it was taken."""
        return sum(self.busy) / len(self.busy) if self.busy else 0.0
