"""The state gauges, set by the leader from counted rows once an iteration."""

from collections import Counter
from datetime import datetime

from controller.domain.jobs import Job
from controller.ports import Clock, Jobs, Workers
from controller.settings import File
from controller.telemetry.metrics import Metrics


class Gauges:
    """One step of the loop."""

    def __init__(self, file: File, jobs: Jobs, workers: Workers, metrics: Metrics, clock: Clock) -> None:
        self._pools = [pool.name for pool in file.pools]
        self._jobs = jobs
        self._workers = workers
        self._metrics = metrics
        self._clock = clock

    async def run(self, epoch: int) -> None:
        """Count once."""
        now = self._clock.now()
        pending = await self._jobs.pending()
        self._metrics.jobs.labels("pending").set(len(pending))
        self._metrics.jobs.labels("running").set(await self._jobs.count_running())
        self._metrics.skips.clear()
        for reason, count in Counter(job.skip_reason for job in pending if job.skip_reason).items():
            self._metrics.skips.labels(reason).set(count)
        for pool in self._pools:
            self._metrics.queue_oldest_seconds.labels(pool).set(_oldest(pending, pool, now))
        live = Counter((w.status.value, w.pool) for w in await self._workers.current() if w.status.live)
        for pool in self._pools:
            for status in ("pending", "running"):
                self._metrics.workers.labels(status, pool).set(live[(status, pool)])


def _oldest(pending: list[Job], pool: str, now: datetime) -> float:
    ages = [
        (now - job.created_at).total_seconds() for job in pending if job.pool == pool and job.mark is None
    ]
    return max(0.0, max(ages, default=0.0))
