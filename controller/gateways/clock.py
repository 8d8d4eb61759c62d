"""Clocks: the machine's own, and one that runs faster for the demo."""

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Aware, UTC."""
        return datetime.now(UTC)

    async def sleep(self, delay: timedelta) -> None:
        """Wait."""
        await asyncio.sleep(max(0.0, delay.total_seconds()))


class ScaledClock:
    """A clock that runs `speed` times as fast from the moment it is made."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._start = datetime.now(UTC)
        self._origin = time.monotonic()

    def now(self) -> datetime:
        """Aware, UTC, ahead of the machine's clock."""
        return self._start + timedelta(seconds=(time.monotonic() - self._origin) * self._speed)

    async def sleep(self, delay: timedelta) -> None:
        """Wait in this clock's time."""
        await asyncio.sleep(max(0.0, delay.total_seconds() / self._speed))
