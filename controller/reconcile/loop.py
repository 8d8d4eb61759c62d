"""The loop: wake, lead, iterate. Only here everything is caught, counted and survived.

wake ◀── doorbell, pod or node event, next due time, 15 s ── all that piled up is served by one iteration

Who begins to lead first finishes what was begun before: missed deliveries, then intents, then orphans.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from controller.domain.status import LoopSnapshot
from controller.errors import LeadershipLost, StoreBusy, StoreError, StoreUnavailable, clip
from controller.ports import Clock
from controller.reconcile.beside import Beside
from controller.telemetry.metrics import Metrics
from controller.telemetry.redaction import redact

log = structlog.get_logger()

STANDBY_EVERY = timedelta(seconds=2)
READY_LIMIT = timedelta(seconds=20)


class Leadership(Protocol):
    """This process's claim to lead."""

    epoch: int | None

    async def acquire(self, now: datetime) -> bool:
        """Try to lead."""
        ...

    async def confirm(self) -> bool:
        """Whether it still leads."""
        ...

    async def lost(self) -> None:
        """Return once this process has led and does so no more, through no doing of its own."""
        ...

    async def drop(self) -> None:
        """Let go."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A named step of an iteration; it is given the epoch under which it may write."""

    name: str
    run: Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Term:
    """What a leader does while it leads. Made anew each time: what was remembered in an earlier term may be false."""

    preparations: Sequence[Step]  # before its first iteration
    steps: Sequence[Step]
    next_due: Callable[[datetime], Awaitable[datetime | None]]


class Loop:
    """Runs the steps of a term while this process leads."""

    def __init__(
        self,
        begin_term: Callable[[], Term],
        leadership: Leadership,
        beside: Beside,
        clock: Clock,
        metrics: Metrics,
        poll_interval: timedelta,
        unknown: Callable[[], tuple[str, ...]],
    ) -> None:
        self._begin_term = begin_term
        self._term: Term | None = None
        self._leadership = leadership
        self._beside = beside
        self._clock = clock
        self._metrics = metrics
        self._poll_interval = poll_interval
        self._unknown = unknown
        self._bell = asyncio.Event()
        self._started_at = clock.now()
        self._iterations = 0
        self._last_iteration_at: datetime | None = None
        self._last_error: str | None = None
        self._role_since = self._started_at
        self._step: str | None = None

    @property
    def under_way(self) -> tuple[str, ...]:
        """What would have to end before the program can."""
        return (*((self._step,) if self._step else ()), *self._beside.under_way)

    @property
    def rung(self) -> bool:
        """Whether somebody has asked for another iteration."""
        return self._bell.is_set()

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
            unknown=self._unknown(),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Go round until told to stop; then finish what is under way and let another process lead."""
        stopping = asyncio.create_task(stop.wait(), name="loop-stop")
        guarding = asyncio.create_task(self._guard(), name="loop-guard")
        try:
            while not stop.is_set():
                await self.turn()
                await self._pause(stopping)
            await self._beside.idle()
        finally:
            stopping.cancel()
            guarding.cancel()
            await self._beside.stop()
            await self._leadership.drop()

    async def turn(self) -> None:
        """Lead if possible, and iterate once."""
        self._bell.clear()
        try:
            if await self._lead():
                await self._iterate()
            self._last_iteration_at = self._clock.now()
        except (LeadershipLost, StoreUnavailable) as error:
            await self._leadership.drop()
            await self._stand_down(error)
        except Exception as error:
            self._last_error = _text(error)
            log.exception("iteration.crashed")
        leads = self._leadership.epoch is not None
        self._metrics.leader.set(1 if leads else 0)
        if not leads:
            self._metrics.clear_state()

    async def _guard(self) -> None:
        """An iteration may hang, and work goes on between two: whoever has lost leadership stops all of it."""
        while True:
            await self._leadership.lost()
            await self._stand_down(
                StoreUnavailable("the database does not answer on the leader's connection")
            )
            self.wake()

    async def _lead(self) -> bool:
        led = self._leadership.epoch
        if led is not None and not await self._leadership.confirm():
            raise StoreUnavailable("the connection that holds leadership is gone")
        leads = await self._leadership.acquire(self._clock.now())
        epoch = self._leadership.epoch
        if epoch is not None and led is None:
            self._role_since = self._clock.now()
            log.info("leader.acquired", epoch=epoch)
            self._term = self._begin_term()
            await self._get_ready(self._term.preparations, epoch)
        return leads

    async def _get_ready(self, preparations: Sequence[Step], epoch: int) -> None:
        """Before the first iteration as leader: each preparation in its turn, or at least tried."""
        try:
            async with asyncio.timeout(READY_LIMIT.total_seconds()):
                for step in preparations:
                    self._step = step.name
                    log.info("leader.preparing", step=step.name)
                    await self._prepare(step, epoch)
        except TimeoutError:
            log.warning("leader.not_prepared", step=self._step)
        self._step = None

    async def _prepare(self, step: Step, epoch: int) -> None:
        try:
            await step.run(epoch)
        except StoreBusy as error:
            self._leave_out(step, error)
        except (LeadershipLost, StoreUnavailable, TimeoutError):
            raise
        except Exception:  # the iterations do the same work again
            log.exception("step.crashed", step=step.name)

    async def _iterate(self) -> None:
        epoch = self._leadership.epoch
        if epoch is None or self._term is None:
            return
        failed: str | None = None
        for step in self._term.steps:
            self._step = step.name
            began = self._clock.now()
            try:
                await step.run(epoch)
            except StoreBusy as error:  # the database is there, and so is leadership
                failed = f"{step.name}: {_text(error)}"
                self._leave_out(step, error)
            except (LeadershipLost, StoreUnavailable):
                raise
            except Exception as error:  # one step's surprise must not stop the others
                failed = f"{step.name}: {_text(error)}"
                log.exception("step.crashed", step=step.name)
            if self._leadership.epoch != epoch:
                raise LeadershipLost(f"leadership was lost during {step.name}")
            self._metrics.iteration_seconds.labels(step.name).observe(
                (self._clock.now() - began).total_seconds()
            )
        self._step = None
        self._iterations += 1
        self._last_error = failed
        if failed is None:
            self._metrics.iteration_last_success_timestamp_seconds.set(self._clock.now().timestamp())

    def _leave_out(self, step: Step, error: StoreBusy) -> None:
        self._metrics.steps_left_out_total.labels(step.name).inc()
        log.warning("step.left_out", step=step.name, error=_text(error))

    async def _stand_down(self, error: Exception) -> None:
        """Without the database, or after another process took over, nothing may be done outside."""
        self._step = None
        self._last_error = _text(error)
        self._role_since = self._clock.now()
        log.warning("leader.stood_down", error=self._last_error)
        await self._beside.stop()

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
        if self._leadership.epoch is None or self._term is None:
            return STANDBY_EVERY
        now = self._clock.now()
        try:
            due = await self._term.next_due(now)
        except StoreError:  # the next iteration finds out what it was
            due = None
        if due is None:
            return self._poll_interval
        return min(self._poll_interval, max(timedelta(milliseconds=10), due - now))


def _text(error: Exception) -> str:
    return clip(redact(f"{type(error).__name__}: {error}"))
