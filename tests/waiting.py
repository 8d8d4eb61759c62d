"""Waiting in a test for something that another task or process does; the deadline is generous on purpose."""

import asyncio
from collections.abc import Awaitable, Callable

DEADLINE = 30.0
LOOK = 0.01


async def until(holds: Callable[[], Awaitable[bool]], deadline: float = DEADLINE) -> None:
    """Return once the condition holds."""
    async with asyncio.timeout(deadline):
        while True:
            if await holds():
                return
            await asyncio.sleep(LOOK)
