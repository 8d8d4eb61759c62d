"""What happens by itself later: one heap of due times, run by the simulator's background task."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import datetime
from typing import Any

from controller.ports import Clock


class Timers:
    """Callbacks at points of the clock's time; a callback checks itself whether it is still wanted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._heap: list[tuple[datetime, int, Callable[[], None]]] = []
        self._earlier = asyncio.Event()

    def at(self, due: datetime, call: Callable[[], None]) -> None:
        """Call back at or after `due`."""
        if not self._heap or due < self._heap[0][0]:
            self._earlier.set()
        heapq.heappush(self._heap, (due, next(self._order), call))

    async def run(self) -> None:
        """Run everything when it is due, until cancelled; between two due times nothing happens."""
        while True:
            self._earlier.clear()
            self.run_due()
            told = asyncio.create_task(self._earlier.wait())
            waits: list[asyncio.Task[Any]] = [told]
            if self._heap:
                waits.append(asyncio.create_task(self._clock.sleep(self._heap[0][0] - self._clock.now())))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    def run_due(self) -> None:
        """Run everything that is due now, in the order of the due times."""
        while self._heap and self._heap[0][0] <= self._clock.now():
            heapq.heappop(self._heap)[2]()
