"""Looks at how workers ended and keeps the breaker's holds; a step of the loop, before demand_match."""

import structlog

from controller.decide.breaker import judge_breakers
from controller.domain.constants import BREAKER_MEMORY
from controller.domain.holds import Hold
from controller.ports import Breakers as BreakerRows
from controller.ports import Clock

log = structlog.get_logger()


class BreakerWatch:
    """One step of the loop. `probing` names the pools that may have one unproven worker at a time."""

    def __init__(self, rows: BreakerRows, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._kept: tuple[Hold, ...] | None = None
        self.probing: frozenset[str] = frozenset()

    async def run(self, epoch: int) -> None:
        """Judge by what the rows say; write only what changed."""
        now = self._clock.now()
        breakers = judge_breakers(await self._rows.endings(now - BREAKER_MEMORY), now)
        self.probing = breakers.probing
        if breakers.holds == self._kept:
            return
        for hold in breakers.holds:
            log.warning("breaker.open", scope=hold.scope.value, target=hold.target, note=hold.note)
        await self._rows.keep(breakers.holds, epoch, now)
        self._kept = breakers.holds
