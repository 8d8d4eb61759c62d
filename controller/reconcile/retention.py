"""Retention: every hour, what has become too old is forgotten; beside the loop, batch by batch."""

from datetime import datetime, timedelta
from functools import partial

import structlog

from controller.decide.pace import is_time
from controller.domain.constants import PRUNE_EVERY
from controller.ports import Clock, Retention
from controller.reconcile.beside import Beside
from controller.settings.file import Retention as Ages

log = structlog.get_logger()


class Prune:
    """One step of the loop."""

    def __init__(self, ages: Ages, rows: Retention, clock: Clock, beside: Beside) -> None:
        self._ages = ages
        self._rows = rows
        self._clock = clock
        self._beside = beside
        self._begun_at: datetime | None = None

    async def run(self, epoch: int) -> None:
        """Begin if an hour has passed, and when a leader starts."""
        now = self._clock.now()
        due = is_time(self._begun_at, PRUNE_EVERY, now)
        if due and self._beside.start("prune", partial(self.prune, epoch)):
            self._begun_at = now

    async def prune(self, epoch: int) -> bool:
        """Forget all that is too old."""
        now = self._clock.now()
        kinds = (
            ("events", self._rows.forget_events, self._ages.events),
            ("occurrences", self._rows.forget_occurrences, self._ages.events),
            ("snapshots", self._rows.forget_snapshots, self._ages.snapshots),
            ("failure_logs", self._rows.forget_failure_logs, self._ages.failure_logs),
            ("holds", self._rows.forget_holds, timedelta()),
        )
        for kind, forget, age in kinds:
            forgotten = 0
            while batch := await forget(now - age, epoch):
                forgotten += batch
            if forgotten:
                log.info("retention.forgot", kind=kind, rows=forgotten)
        return False
