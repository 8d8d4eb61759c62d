"""Stuck rows, when a leader begins and every five minutes: a running job whose worker ended five minutes ago, and
what a clock that was ahead has put off.

A pending worker without a pod needs no such look: OrphanSweep asks for its pod in every iteration.
"""

import structlog

from controller.decide.pace import is_time
from controller.domain.constants import PUT_OFF_WITHIN, STUCK_AFTER
from controller.ports import Clock, Stuck

log = structlog.get_logger()

SHOWN = 20


class StuckRows:
    """One step of the loop."""

    def __init__(self, stuck: Stuck, clock: Clock) -> None:
        self._stuck = stuck
        self._clock = clock
        self._epoch: int | None = None
        self._looked_at = clock.now()

    async def run(self, epoch: int) -> None:
        """Have GitHub asked about them soon: sync_jobs does so in this iteration."""
        now = self._clock.now()
        if epoch == self._epoch and not is_time(self._looked_at, STUCK_AFTER, now):
            return
        found = await self._stuck.look_now(now - STUCK_AFTER, epoch, now)
        pulled = await self._stuck.pull_back(now + PUT_OFF_WITHIN, epoch, now)
        self._epoch, self._looked_at = epoch, now
        if found:
            log.info("jobs.stuck", jobs=len(found), job_ids=found[:SHOWN])
        if pulled:
            log.warning("clock.was_ahead", rows=pulled)
