"""Ctrl-C ends the demo, whatever its parts are waiting for."""

import asyncio
from contextlib import suppress

from controller.demo.run import end

GENEROUS = 30.0  # seconds


async def test_what_has_lost_a_cancellation_is_ended_all_the_same() -> None:
    async def deaf_once() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    task = asyncio.create_task(deaf_once())
    await asyncio.sleep(0)
    _, late = await asyncio.wait({asyncio.create_task(end(task))}, timeout=GENEROUS)
    assert not late
    assert task.cancelled()
