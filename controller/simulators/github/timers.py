"""What happens by itself later: one heap of due times, run by the simulator's background task."""

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime

from controller.ports import Clock


class Timers:
    """Callbacks at points of the clock's time; a callback checks itself whether it is still wanted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._heap: list[tuple[datetime, int, Callable[[], None]]] = []

    def at(self, due: datetime, call: Callable[[], None]) -> None:
        """Call back at or after `due`."""
        heapq.heappush(self._heap, (due, next(self._order), call))

    def run_due(self) -> None:
        """Run everything that is due now, in the order of the due times."""
        while self._heap and self._heap[0][0] <= self._clock.now():
            heapq.heappop(self._heap)[2]()
