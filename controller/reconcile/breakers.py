"""Looks at how workers ended and keeps the breaker's holds; a step of the loop, before demand_match."""

import structlog

from controller.decide.breaker import Breakers, judge_breakers
from controller.domain.constants import BREAKER_MEMORY
from controller.domain.holds import Hold
from controller.domain.pools import Catalogue
from controller.ports import Breakers as BreakerRows
from controller.ports import Clock

log = structlog.get_logger()


class BreakerWatch:
    """One step of the loop. `breakers` is what it found last."""

    def __init__(self, rows: BreakerRows, clock: Clock, catalogue: Catalogue) -> None:
        self._rows = rows
        self._clock = clock
        self._images = {pool.name: pool.image for pool in catalogue.pools}
        self._kept: tuple[Hold, ...] | None = None
        self.breakers = Breakers(())

    async def run(self, epoch: int) -> None:
        """Judge by what the rows say; write only what changed."""
        now = self._clock.now()
        breakers = self.breakers = await self.judge()
        if breakers.holds == self._kept:
            return
        for hold in breakers.holds:
            log.warning("breaker.open", scope=hold.scope.value, target=hold.target, note=hold.note)
        await self._rows.keep(breakers.holds, epoch, now)
        self._kept = breakers.holds

    async def judge(self) -> Breakers:
        """What follows from how workers ended."""
        now = self._clock.now()
        endings = await self._rows.endings(now - BREAKER_MEMORY, self._images)
        return judge_breakers(endings, self._images, now)
