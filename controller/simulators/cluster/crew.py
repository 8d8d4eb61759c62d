"""The tasks of a running simulator: started here, ended together, their failures never lost."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta

from controller.ports import Clock


class Crew:
    """Owns every background task of a simulator; outside of `open` and `close` nothing runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[Exception] = []
        self.working = False

    def open(self) -> None:
        """Let tasks be started."""
        self.working = True

    def start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Start a task; what it raises is raised again by `close`."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def later(self, delay: timedelta, call: Callable[[], None], name: str) -> asyncio.Task[None]:
        """Call back after so much of the clock's time."""

        async def wait() -> None:
            await self._clock.sleep(delay)
            call()

        return self.start(wait(), name)

    async def close(self) -> None:
        """End all tasks, and raise what any of them raised."""
        self.working = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        errors, self._errors = self._errors, []
        if errors:
            raise ExceptionGroup("parts of the simulated cluster failed", errors)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, Exception):
            self._errors.append(error)
