"""One piece of work per key at a time: whoever comes meanwhile gets the same result, or the same failure."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Work under way by key. A failure is not kept: the next call tries anew."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Join the work under way for this key, or start it."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.create_task(work())
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        # Shielded: a waiter that gives up must not take the work away from the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel what is under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, key: K, task: asyncio.Task[V]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen, so that asyncio does not complain when every waiter has gone
