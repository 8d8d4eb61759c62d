"""The state gauges, set by the leader from the rows that demand_match has read."""

from collections import Counter
from datetime import datetime

from controller.domain.holds import Holds
from controller.domain.jobs import Job
from controller.domain.supply import Supply
from controller.settings import File
from controller.telemetry.metrics import Metrics


class Gauges:
    """Shows demand and supply to Prometheus."""

    def __init__(self, file: File, metrics: Metrics) -> None:
        self._pools = [pool.name for pool in file.pools]
        self._metrics = metrics

    def show(self, seen: Supply, now: datetime) -> None:
        """Set the gauges to what the rows say."""
        self._metrics.jobs.labels("pending").set(len(seen.jobs))
        self._metrics.jobs.labels("running").set(seen.running)
        self._metrics.skips.clear()
        for reason, count in Counter(job.skip_reason for job in seen.jobs if job.skip_reason).items():
            self._metrics.skips.labels(reason).set(count)
        live = Counter((w.status.value, w.pool) for w in seen.workers if w.status.live)
        for pool in self._pools:
            self._metrics.queue_oldest_seconds.labels(pool).set(_oldest(seen.jobs, pool, now))
            for status in ("pending", "running"):
                self._metrics.workers.labels(status, pool).set(live[(status, pool)])
        for kind, count in _kinds(seen.holds, now).items():
            self._metrics.holds.labels(kind).set(count)


def _oldest(jobs: tuple[Job, ...], pool: str, now: datetime) -> float:
    ages = [(now - job.created_at).total_seconds() for job in jobs if job.pool == pool and job.mark is None]
    return max(0.0, max(ages, default=0.0))


def _kinds(holds: Holds, now: datetime) -> Counter[str]:
    found = (holds.on(scope, target, now) for scope, target in holds.by_target)
    return Counter(hold.why.value for hold in found if hold is not None)
