"""A clock that stands still until a test moves it."""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

from controller.simulators.cluster.quiet import quiet

EPOCH = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class ManualClock:
    """Time that passes only in `advance`; at each step other processes get `grace` real seconds to answer."""

    def __init__(self, start: datetime = EPOCH, grace: float = 0.0) -> None:
        self._now = start
        self._grace = grace
        self._order = itertools.count()
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Aware, UTC."""
        return self._now

    async def sleep(self, delay: timedelta) -> None:
        """Wait until a test has moved the time far enough."""
        if delay <= timedelta():
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + delay, next(self._order), waiter))
        await waiter

    @property
    def next_due(self) -> datetime | None:
        """When the next sleeper wakes, if anyone sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        await quiet(self._grace)

    async def advance(self, by: timedelta) -> None:
        """Move the time forward, waking sleepers in order; each step comes to rest before the next."""
        end = self._now + by
        await self.settle()
        while (due := self.next_due) is not None and due <= end:
            self._now = max(self._now, due)
            while (first := self.next_due) is not None and first <= self._now:
                heapq.heappop(self._sleepers)[2].set_result(None)
            await self.settle()
        self._now = end
        await self.settle()
