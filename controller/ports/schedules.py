"""Schedules and occurrences as the core sees them. Every write checks the leader's epoch in its own transaction."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from controller.domain.controls import By
from controller.domain.firings import Firing, Pressure
from controller.domain.holds import Hold
from controller.domain.jobs import Scope
from controller.domain.pages import Listing, Slice, Window
from controller.domain.schedules import (
    Agenda,
    Definition,
    Occurrence,
    OccurrenceStatus,
    Planned,
    Schedule,
    ScheduleLine,
    ScheduleSkip,
    StartedRun,
)


class Claimed(Protocol):
    """A due schedule that one transaction alone holds."""

    schedule: Schedule

    async def pressure(self) -> Pressure:
        """What is under way already."""
        ...

    async def record(self, firing: Firing, now: datetime, *, manual: bool = False) -> list[OccurrenceStatus]:
        """Write what was decided and advance; the outcomes that are final already."""
        ...


class Schedules(Protocol):
    """The schedules."""

    def claimed(self, epoch: int, now: datetime) -> AbstractAsyncContextManager[Claimed | None]:
        """One transaction that holds the schedule that is due longest; None if none is due."""
        ...

    async def set_aside(self, name: str, error: str, epoch: int, now: datetime) -> None:
        """A schedule that cannot be planned comes no more until it is changed; it says why."""
        ...

    async def follow_file(
        self,
        wanted: Sequence[Definition],
        plan: Callable[[Definition], Planned | None],
        epoch: int,
        now: datetime,
    ) -> None:
        """Make the file's schedules what the file says."""
        ...

    async def replan(
        self, again: Callable[[Schedule], Planned | None], epoch: int, now: datetime
    ) -> list[str]:
        """Bring back those that wait for a time that a clock set wrong made too late; their names."""
        ...


class Occurrences(Protocol):
    """The occurrences that need the outside: a queue of leased rows."""

    async def agenda(self) -> Agenda:
        """When what is due next."""
        ...

    async def claim(self, epoch: int, now: datetime) -> Occurrence | None:
        """Lease the next one that is ripe; of one schedule never two at once, and the older first."""
        ...

    async def note_sent(
        self, occurrence: Occurrence, runs_before: Collection[int], epoch: int, now: datetime
    ) -> bool:
        """A request is about to be sent; False: it must not be, or not now."""
        ...

    async def look_for_run(
        self, occurrence: Occurrence, result: str, at: datetime, epoch: int, now: datetime
    ) -> bool:
        """It was started, but not which run that is was said: from now on it is only looked for."""
        ...

    async def complete(
        self, occurrence: Occurrence, result: str, run: StartedRun | None, epoch: int, now: datetime
    ) -> bool:
        """It is done."""
        ...

    async def open_window(
        self, occurrence: Occurrence, scope: Scope, until: datetime, epoch: int, now: datetime
    ) -> bool:
        """From now on spare runners are kept; it runs until its window ends."""
        ...

    async def skip(self, occurrence: Occurrence, reason: ScheduleSkip, epoch: int, now: datetime) -> bool:
        """It does nothing, because what it would do is under way."""
        ...

    async def postpone(
        self,
        occurrence: Occurrence,
        at: datetime,
        error: str | None,
        *,
        counts: bool,
        epoch: int,
        now: datetime,
    ) -> bool:
        """Try again then; an attempt that was not one does not count."""
        ...

    async def fail(
        self, occurrence: Occurrence, error: str, epoch: int, now: datetime, *, refused: bool = False
    ) -> bool:
        """It failed for good, until somebody retries it by hand; the schedule shows why. Refused: nothing was sent."""
        ...

    async def other_runs(self, occurrence: Occurrence, limit: int) -> list[Occurrence]:
        """The others of its schedule whose run is not known to have ended, newest first."""
        ...

    async def note_run_ended(self, occurrence: Occurrence, epoch: int, now: datetime) -> None:
        """GitHub says that the run it started has ended."""
        ...

    async def linked(self, run_ids: Collection[int]) -> frozenset[int]:
        """Which of these runs belong to an occurrence already."""
        ...

    async def known_scope(self, login: str, repo: str | None, since: datetime) -> Scope | None:
        """Where a recent job of that account (and repository) belonged."""
        ...

    async def reclaim(self, held: Collection[int], epoch: int, now: datetime) -> list[str]:
        """Put back what a process left behind that ended, but for what this one has in hand."""
        ...

    async def pull_back(self, epoch: int, now: datetime) -> None:
        """What a clock set ahead wrote lasts no longer than it would from now on."""
        ...

    async def end_windows(self, epoch: int, now: datetime) -> int:
        """Close the warm windows whose time is over; how many."""
        ...


class QuietPools(Protocol):
    """The holds of pools that are in their quiet hours."""

    async def keep(self, holds: Sequence[Hold], epoch: int, now: datetime) -> None:
        """Make the quiet hours' holds exactly these."""
        ...


class ScheduleReader(Protocol):
    """Schedules as people look at them; StoreError when the database cannot answer."""

    async def lines(self) -> list[ScheduleLine]:
        """Every schedule with its newest occurrence."""
        ...

    async def occurrences(self, window: Window, part: Slice) -> Listing[Occurrence]:
        """What became of the times of all schedules, newest first."""
        ...

    async def waiting(self, since: datetime, limit: int) -> list[Occurrence]:
        """What waits and runs, and what failed since then."""
        ...


class Desk(Protocol):
    """Schedules as people change them; StoreError when that cannot be."""

    async def create(
        self, definition: Definition, planned: Planned | None, by: By, now: datetime
    ) -> Schedule | None:
        """A new schedule of the API's; None if the name is taken."""
        ...

    async def change(
        self,
        name: str,
        change: Callable[[Schedule], tuple[Definition, Planned | None]],
        by: By,
        now: datetime,
    ) -> Schedule | None:
        """Change one of the API's; None if there is none."""
        ...

    async def switch(
        self,
        name: str,
        enabled: bool,
        plan: Callable[[Definition], Planned | None],
        by: By,
        now: datetime,
    ) -> Schedule | None:
        """Enable or disable a schedule, whoever owns it; None if there is none."""
        ...

    async def delete(self, name: str, by: By, now: datetime) -> Schedule | None:
        """Forget one that is not in the file; the answer is what it was, or None."""
        ...

    async def run_now(self, name: str, by: By, now: datetime) -> Occurrence | ScheduleSkip | None:
        """Fire outside its times; None if there is no such schedule."""
        ...

    async def cancel(self, number: int, by: By, now: datetime) -> tuple[Occurrence, bool] | None:
        """Take back a pending occurrence; whether that was done. None if there is none."""
        ...

    async def retry(self, number: int, by: By, now: datetime) -> tuple[Occurrence, bool] | None:
        """Put a failed occurrence back into the queue; whether that was done. None if there is none."""
        ...
