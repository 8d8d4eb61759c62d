"""The state gauges, set by the leader from the rows that demand_match has read."""

from collections import Counter
from datetime import datetime

from controller.decide.capacity import BoardState, SlotMap, Toleration
from controller.domain.holds import Holds, HoldWhy
from controller.domain.jobs import Job
from controller.domain.sightings import Unknown
from controller.domain.supply import Supply
from controller.settings import File
from controller.telemetry.metrics import Metrics


class Gauges:
    """Shows demand and supply to Prometheus."""

    def __init__(self, file: File, metrics: Metrics) -> None:
        self._pools = [pool.name for pool in file.pools]
        self._catalogue = file.catalogue
        self._metrics = metrics

    def show(self, seen: Supply, slots: SlotMap | Unknown, now: datetime) -> None:
        """Set the gauges to what the rows and the boards say; boards that cannot be seen have no number."""
        self._metrics.budgets.forget_unused(now)
        self._show_boards(slots)
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
        held = _kinds(seen.holds, now)
        for why in HoldWhy:
            self._metrics.holds.labels(why.value).set(held[why.value])

    def _show_boards(self, slots: SlotMap | Unknown) -> None:
        if isinstance(slots, Unknown):
            self._metrics.board_slots.clear()
            return
        for pool in self._catalogue.pools:
            tolerations = [Toleration.of(raw) for raw in pool.tolerations]
            states = slots.slots(pool.selector, tolerations)
            for state in BoardState:
                self._metrics.board_slots.labels(pool.name, state.value).set(states.get(state, 0))


def _oldest(jobs: tuple[Job, ...], pool: str, now: datetime) -> float:
    ages = [(now - job.created_at).total_seconds() for job in jobs if job.pool == pool and job.mark is None]
    return max(0.0, max(ages, default=0.0))


def _kinds(holds: Holds, now: datetime) -> Counter[str]:
    found = (holds.on(scope, target, now) for scope, target in holds.by_target)
    return Counter(hold.why.value for hold in found if hold is not None)
