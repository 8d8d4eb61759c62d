"""The loop: wake, lead, iterate. Only here everything is caught, counted and survived.

wake ◀── doorbell, pod or node event, next due time, 15 s ── all that piled up is served by one iteration
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from controller.domain.status import LoopSnapshot
from controller.errors import LeadershipLost, StoreUnavailable, clip
from controller.ports import Clock
from controller.reconcile.provision import Provisioner
from controller.telemetry.metrics import Metrics
from controller.telemetry.redaction import redact

log = structlog.get_logger()

STANDBY_EVERY = timedelta(seconds=2)


class Leadership(Protocol):
    """This process's claim to lead."""

    epoch: int | None

    async def acquire(self, now: datetime) -> bool:
        """Try to lead."""
        ...

    async def confirm(self) -> bool:
        """Whether it still leads."""
        ...

    async def drop(self) -> None:
        """Let go."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A named step of an iteration; it is given the epoch under which it may write."""

    name: str
    run: Callable[[int], Awaitable[object]]


class Loop:
    """Runs the steps while this process leads."""

    def __init__(
        self,
        steps: Sequence[Step],
        leadership: Leadership,
        provisioner: Provisioner,
        clock: Clock,
        metrics: Metrics,
        poll_interval: timedelta,
        next_due: Callable[[datetime], Awaitable[datetime | None]],
    ) -> None:
        self._steps = steps
        self._leadership = leadership
        self._provisioner = provisioner
        self._clock = clock
        self._metrics = metrics
        self._poll_interval = poll_interval
        self._next_due = next_due
        self._bell = asyncio.Event()
        self._started_at = clock.now()
        self._iterations = 0
        self._last_iteration_at: datetime | None = None
        self._last_error: str | None = None
        self._role_since = self._started_at
        self.under_way: str | None = None

    def wake(self) -> None:
        """Have an iteration run soon; many calls make one."""
        self._bell.set()

    def snapshot(self) -> LoopSnapshot:
        """How the loop is doing."""
        leads = self._leadership.epoch is not None
        return LoopSnapshot(
            leads=leads,
            started_at=self._started_at,
            iterations=self._iterations,
            last_iteration_at=self._last_iteration_at,
            last_error=self._last_error,
            role_since=self._role_since,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Go round until told to stop; then finish what is under way and let another process lead."""
        stopping = asyncio.create_task(stop.wait(), name="loop-stop")
        try:
            while not stop.is_set():
                await self.turn()
                await self._pause(stopping)
            self.under_way = "provisioning"
            await self._provisioner.idle()
            self.under_way = None
        finally:
            stopping.cancel()
            await self._provisioner.stop()
            await self._leadership.drop()

    async def turn(self) -> None:
        """Lead if possible, and iterate once."""
        self._bell.clear()
        try:
            if await self._lead():
                await self._iterate()
            self._last_iteration_at = self._clock.now()
        except (LeadershipLost, StoreUnavailable) as error:
            await self._stand_down(error)
        except Exception as error:
            self._last_error = _text(error)
            log.exception("iteration.crashed")
        self._metrics.leader.set(1 if self._leadership.epoch is not None else 0)

    async def _lead(self) -> bool:
        led = self._leadership.epoch
        if led is not None and not await self._leadership.confirm():
            raise StoreUnavailable("the connection that holds leadership is gone")
        leads = await self._leadership.acquire(self._clock.now())
        if leads and led is None:
            self._role_since = self._clock.now()
            log.info("leader.acquired", epoch=self._leadership.epoch)
        return leads

    async def _iterate(self) -> None:
        epoch = self._leadership.epoch
        if epoch is None:
            return
        failed: str | None = None
        for step in self._steps:
            self.under_way = step.name
            began = self._clock.now()
            try:
                await step.run(epoch)
            except (LeadershipLost, StoreUnavailable):
                raise
            except Exception as error:  # one step's surprise must not stop the others
                failed = f"{step.name}: {_text(error)}"
                log.exception("step.crashed", step=step.name)
            self._metrics.iteration_seconds.labels(step.name).observe(
                (self._clock.now() - began).total_seconds()
            )
        self.under_way = None
        self._iterations += 1
        self._last_error = failed
        if failed is None:
            self._metrics.iteration_last_success_timestamp_seconds.set(self._clock.now().timestamp())

    async def _stand_down(self, error: Exception) -> None:
        """Without the database, or after another process took over, nothing may be done outside."""
        self.under_way = None
        self._last_error = _text(error)
        self._role_since = self._clock.now()
        log.warning("leader.stood_down", error=self._last_error)
        await self._provisioner.stop()
        await self._leadership.drop()

    async def _pause(self, stopping: asyncio.Task[bool]) -> None:
        """Wait for the bell, the next due time or the poll interval, whichever comes first."""
        bell = asyncio.create_task(self._bell.wait(), name="loop-bell")
        timer = asyncio.create_task(self._clock.sleep(await self._patience()), name="loop-timer")
        try:
            await asyncio.wait({bell, timer, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            bell.cancel()
            timer.cancel()

    async def _patience(self) -> timedelta:
        if self._leadership.epoch is None:
            return STANDBY_EVERY
        now = self._clock.now()
        try:
            due = await self._next_due(now)
        except StoreUnavailable:
            due = None
        if due is None:
            return self._poll_interval
        return min(self._poll_interval, max(timedelta(milliseconds=10), due - now))


def _text(error: Exception) -> str:
    return clip(redact(f"{type(error).__name__}: {error}"))
