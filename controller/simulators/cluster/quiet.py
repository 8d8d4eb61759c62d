"""Waiting until the event loop has nothing left to do without time passing.

Stands beside the flow: `ClusterSimulator.settle` and the tests' manual clock use it between two steps of
time. It looks only at the loop and its threads, so all that talks over loopback inside this process is one system.
"""

import asyncio

EMPTY_TURNS = 4
"""How many turns in a row must be empty: the two ends of a socket need more than one."""

BUSY_TURNS = 500_000
"""After so many busy turns something in the system under test must be spinning."""


THREAD_WAIT = 0.001
"""How long to leave the processor to a thread that the loop waits for, in real seconds."""


class NeverQuietError(RuntimeError):
    """The loop did not come to rest."""


async def quiet(grace: float = 0.0) -> None:
    """Yield until nothing else is ready, and stays so for `grace` real seconds (for other processes)."""
    loop = asyncio.get_running_loop()
    # The ready queue is private to asyncio; there is no public way to ask whether a loop is idle.
    ready = loop._ready  # type: ignore[attr-defined]
    empty = busy = 0
    rest_began = loop.time()
    while empty < EMPTY_TURNS or loop.time() - rest_began < grace:
        threads = _threads_at_work(loop)
        await asyncio.sleep(THREAD_WAIT if threads else 0)
        if not ready and not threads:
            empty += 1
            continue
        empty = 0
        rest_began = loop.time()
        busy += 1
        if busy > BUSY_TURNS:
            raise NeverQuietError(f"the event loop was still busy after {BUSY_TURNS} turns")


def _threads_at_work(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop's own threads have work: HTTP clients read files and look up names there."""
    executor = getattr(loop, "_default_executor", None)
    if executor is None:
        return False
    # A thread gives its result to the loop before it counts as idle, so nothing falls between the two.
    busy: bool = executor._work_queue.qsize() > 0 or executor._idle_semaphore._value < len(executor._threads)
    return busy
