"""What the pages need: the reads (a gateway does them), the clock, the loop's state, the settings, the metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from starlette.requests import Request

from controller.domain.charts import BoardDay, Charts, Span
from controller.domain.jobs import Job
from controller.domain.pages import (
    BoardRow,
    BoardTally,
    HoldRow,
    JobFilter,
    JobStory,
    Leader,
    Listing,
    Overview,
    Slice,
    Turn,
    UsageRow,
    Window,
    WorkerFilter,
    WorkerRow,
    WorkerStory,
)
from controller.domain.status import LoopStatus
from controller.ports import Clock
from controller.settings import File


class PageReader(Protocol):
    """Read-only questions; StoreError when the database cannot answer."""

    async def overview(self, now: datetime, part: Slice) -> Overview:
        """The whole installation at a glance."""
        ...

    async def leader(self) -> Leader | None:
        """Who leads or led last; None if nobody ever did."""
        ...

    async def usage(self, window: Window, part: Slice) -> Listing[UsageRow]:
        """Demand and supply by key, the largest deficit first."""
        ...

    async def history(self, wanted: JobFilter, part: Slice) -> Listing[Job]:
        """Jobs by status, then by time."""
        ...

    async def workers(self, wanted: WorkerFilter, part: Slice) -> Listing[WorkerRow]:
        """Workers, newest first."""
        ...

    async def boards(self, window: Window, part: Slice) -> tuple[Listing[BoardRow], tuple[BoardTally, ...]]:
        """Boards by type and name, and the tallies of that moment."""
        ...

    async def holds(self, now: datetime) -> tuple[HoldRow, ...]:
        """What is held at the moment."""
        ...

    async def job(self, job_id: int) -> JobStory | None:
        """All about one job."""
        ...

    async def worker(self, name: str) -> WorkerStory | None:
        """All about one worker."""
        ...

    async def knows(self, number: int, *, sees_private: bool) -> tuple[bool, bool]:
        """Whether a number is the id of a job, and whether it is that of a run; runs of private jobs are not told."""
        ...

    async def charts(self, span: Span, now: datetime) -> Charts:
        """What the charts of one span are drawn from."""
        ...

    async def board_days(self, slots: dict[str, int], now: datetime) -> tuple[BoardDay, ...]:
        """The last 24 hours of these boards, given with their slots."""
        ...

    async def board_tallies(self, window: Window) -> tuple[BoardTally, ...]:
        """How many boards there are of each type and state; the window is that of their last change."""
        ...

    async def turn(self, job: Job, board: str, pools: Sequence[str]) -> Turn:
        """What says when a waiting job's turn comes; `board` is its pool's type, and `pools` all that use it."""
        ...


class Visitors(Protocol):
    """Who reads; the one place that is asked whether a reader is signed in."""

    @property
    def possible(self) -> bool:
        """Whether anyone can sign in at all."""
        ...

    def reader(self, request: Request) -> str | None:
        """The name of whoever is signed in; None for everybody else."""
        ...

    def csrf(self, request: Request) -> str | None:
        """What forms for this reader must carry; None without a session."""
        ...


@dataclass(frozen=True, slots=True)
class PageDeps:
    """What the pages are given."""

    store: PageReader
    clock: Clock
    status: LoopStatus
    settings: File
    render_metrics: Callable[[], tuple[bytes, str]]
    visitors: Visitors

    def closed_to(self, request: Request) -> bool:
        """Whether this reader must sign in first: `web.private` asks for it on every page and in every twin."""
        return self.settings.web.private and self.visitors.reader(request) is None
