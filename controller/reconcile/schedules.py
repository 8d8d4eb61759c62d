"""schedules: fires what is due, closes warm windows, puts back what a dead process held. A step of the loop."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import structlog

from controller.decide.occurrences import judge_due, plan_again, plan_first
from controller.decide.pace import is_time
from controller.decide.quiet_hours import next_change, quiet_until
from controller.domain.constants import STUCK_AFTER
from controller.domain.holds import Hold, HoldScope, HoldWhy
from controller.domain.schedules import OccurrenceStatus, QuietHours
from controller.errors import clip
from controller.ports import Clock, Random
from controller.ports.schedules import Occurrences, QuietPools, Schedules
from controller.reconcile.beside import Beside
from controller.reconcile.occurrences import OccurrenceWork
from controller.settings import File
from controller.telemetry.metrics import Metrics

log = structlog.get_logger()

WORK = "occurrences "
AT_ONCE = 4  # occurrences that wait for GitHub
AT_MOST = 1_000  # schedules fired in one iteration


class ScheduleStep:
    """One step of the loop, between sync_workers and demand_match."""

    def __init__(
        self,
        file: File,
        schedules: Schedules,
        occurrences: Occurrences,
        work: OccurrenceWork,
        clock: Clock,
        rng: Random,
        metrics: Metrics,
        beside: Beside,
    ) -> None:
        self._definitions = [entry.as_domain() for entry in file.schedules]
        self._schedules = schedules
        self._occurrences = occurrences
        self._work = work
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._beside = beside
        self._led: int | None = None  # the epoch for which the file's schedules were written
        self._looked_at: datetime | None = None

    async def next_due(self) -> datetime | None:
        """When the step is needed next; what is ripe while others are carried out is taken by the same hands."""
        agenda = await self._occurrences.agenda()
        busy = any(name.startswith(WORK) for name in self._beside.under_way)
        if busy and agenda.occurrence is not None and agenda.occurrence <= self._clock.now():
            agenda = replace(agenda, occurrence=None)
        return agenda.next

    async def run(self, epoch: int) -> None:
        """Fire what is due; the network is left to what runs beside."""
        now = self._clock.now()
        if self._led != epoch:
            await self._schedules.follow_file(
                self._definitions, lambda each: plan_first(each, now, self._rng.random()), epoch, now
            )
            self._led, self._looked_at = epoch, None
        if is_time(self._looked_at, STUCK_AFTER, now):
            await self._recover(epoch, now)
            self._looked_at = now
        agenda = await self._occurrences.agenda()
        if agenda.window is not None and agenda.window <= now:  # before the same schedule opens the next one
            for _ in range(await self._occurrences.end_windows(epoch, now)):
                self._count(OccurrenceStatus.COMPLETED)
        if agenda.schedule is not None and agenda.schedule <= now:
            await self._fire(epoch, now)
        agenda = await self._occurrences.agenda()
        if agenda.occurrence is not None and agenda.occurrence <= now:
            for number in range(AT_ONCE):
                self._beside.start(f"{WORK}{number}", partial(self._work.work, epoch))

    async def _recover(self, epoch: int, now: datetime) -> None:
        """At start-up and every few minutes: leases that ran out, and what a wrong clock wrote."""
        await self._occurrences.pull_back(epoch, now)
        reclaimed = await self._occurrences.reclaim(self._work.in_hand, epoch, now)
        moved = await self._schedules.replan(
            lambda schedule: plan_again(schedule, now, self._rng.random()), epoch, now
        )
        for name in reclaimed:
            log.warning("schedule.reclaimed", schedule=name)
        for name in moved:
            log.warning("schedule.replanned", schedule=name)

    async def _fire(self, epoch: int, now: datetime) -> None:
        """One transaction a schedule, so that a bad one does not keep the others back."""
        for _ in range(AT_MOST):
            broken: tuple[str, str] | None = None
            async with self._schedules.claimed(epoch, now) as claimed:
                if claimed is None:
                    return
                try:
                    firing = judge_due(claimed.schedule, await claimed.pressure(), now, self._rng.random())
                except ValueError as error:  # a spec that this program cannot read
                    broken = claimed.schedule.name, clip(str(error))
                else:
                    for outcome in await claimed.record(firing, now):
                        self._count(outcome)
            if broken is not None:
                log.warning("schedule.broken", schedule=broken[0], error=broken[1])
                await self._schedules.set_aside(*broken, epoch, now)

    def _count(self, outcome: OccurrenceStatus) -> None:
        self._metrics.schedule_runs_total.labels(outcome.value).inc()


class QuietHoursStep:
    """Holds pools in their quiet hours; a step of the loop."""

    def __init__(self, file: File, rows: QuietPools, clock: Clock) -> None:
        self._pools = [(pool.name, pool.quiet_hours.as_domain()) for pool in file.pools if pool.quiet_hours]
        self._rows = rows
        self._clock = clock
        self._kept: Sequence[tuple[str, datetime]] | None = None

    def next_due(self, now: datetime) -> datetime | None:
        """When the quiet hours of a pool next begin or end."""
        return min((next_change(hours, now) for _, hours in self._pools), default=None)

    async def run(self, epoch: int) -> None:
        """Make the holds what the hour says; written only on change."""
        now = self._clock.now()
        quiet = [(name, until, hours) for name, hours in self._pools if (until := quiet_until(hours, now))]
        kept = [(name, until) for name, until, _ in quiet]
        if kept == self._kept:
            return
        await self._rows.keep([_hold(name, until, hours, now) for name, until, hours in quiet], epoch, now)
        self._kept = kept


def _hold(pool: str, until: datetime, hours: QuietHours, now: datetime) -> Hold:
    return Hold(
        scope=HoldScope.POOL,
        target=pool,
        why=HoldWhy.QUIET_HOURS,
        who="quiet hours",
        created_at=now,
        until=until,
        note=f"quiet from {hours.start:%H:%M} to {hours.end:%H:%M} ({hours.timezone})",
    )
