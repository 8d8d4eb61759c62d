"""What waits for the network runs beside the loop, so that an iteration waits for nothing but the database.

Work is named; of each name there is at most one under way. Work that changed something wakes the loop. Everything
begun here writes under an epoch and may be repeated, so that cancelling it at any point does no harm.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TypeVar

import structlog

from controller.errors import ControllerError
from controller.telemetry.redaction import redact

log = structlog.get_logger()

Work = Callable[[], Awaitable[bool]]  # True: the loop has something to look at
T = TypeVar("T")


async def all_of(parts: Iterable[Awaitable[T]]) -> list[T]:
    """All parts of a work at once, each to its end; then the first failure, so that no part outlives its work."""
    done = await asyncio.gather(*parts, return_exceptions=True)
    results: list[T] = []
    for each in done:
        if isinstance(each, BaseException):
            raise each
        results.append(each)
    return results


class Beside:
    """The work under way."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def under_way(self) -> tuple[str, ...]:
        """The names of all that is under way."""
        return tuple(self._tasks)

    def start(self, name: str, work: Work) -> bool:
        """Begin the work, unless some of that name is under way."""
        if name in self._tasks:
            return False
        task = asyncio.create_task(self._run(name, work), name=name)
        self._tasks[name] = task
        # Not at the end of the work itself: work that is dropped before its first step has no end.
        task.add_done_callback(lambda _: self._tasks.pop(name, None))
        return True

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def finished(self, names: Collection[str]) -> None:
        """Wait until nothing of these names is under way."""
        while tasks := [task for name, task in self._tasks.items() if name in names]:
            await asyncio.wait(tasks)

    async def stop(self) -> None:
        """Drop what is under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, name: str, work: Work) -> None:
        try:
            if await work():
                self._wake()
        except ControllerError as error:  # decided again in the next iteration
            log.warning("work.failed", work=name, error=redact(str(error)) or type(error).__name__)
        except Exception:
            log.exception("work.crashed", work=name)
