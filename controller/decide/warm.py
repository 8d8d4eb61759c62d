"""Warm windows: spare runners that are kept ready after every pending job was served. Pure.

    missing(floor) = runners − (free workers of the key − pending jobs of the key)

A spare runner is a worker like any other: it obeys cap, holds, slots and requests, and the next job of its key takes
it. It never takes a board that a waiting job could use: not one that a job backs off from or lacks requests for, and
while jobs wait for boards of its type, idle spare runners are not kept there any longer than others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.decide.capacity import SlotMap, Toleration
from controller.decide.trials import Tries
from controller.domain.constants import BACK_OFF_FIRST, BACK_OFF_LAST, WARM_LINGERS, WARM_REPLACED_WITHIN
from controller.domain.jobs import DemandKey, Entity
from controller.domain.pools import Catalogue, Pool
from controller.domain.reservations import Need
from controller.domain.schedules import Floor
from controller.domain.sightings import Unknown
from controller.domain.workers import Worker


@dataclass(frozen=True, slots=True)
class WarmStep:
    """Make a spare worker for this window; a slot of `node` was set aside for it."""

    floor: Floor
    pool: Pool
    node: str

    @property
    def need(self) -> Need:
        """What the worker is made for."""
        floor = self.floor
        return Need(floor.scope, floor.labels, floor.scope.repo, warm_for=floor.occurrence)


@dataclass(slots=True)
class Leftover:
    """What the pending jobs have left over."""

    slots: SlotMap | Unknown
    held: Counter[int]  # workers by entity
    runners: dict[int, int]  # that the request limits of each installation allow
    tries: Tries  # of pools that have yet to show that they work


@dataclass(frozen=True, slots=True)
class Waiting:
    """The jobs that got no worker now: which boards they still want."""

    pools: tuple[Pool, ...] = ()  # one entry for each job that will want a board of it soon
    short: frozenset[str] = frozenset()  # board types without a free slot


def top_up(
    floors: Sequence[Floor],
    spare: Mapping[DemandKey, int],
    left: Leftover,
    waiting: Waiting,
    catalogue: Catalogue,
    cap: Callable[[Entity], int | None],
    barred: Callable[[Floor, Pool], bool],
    now: datetime,
) -> tuple[WarmStep, ...]:
    """The spare workers to make now."""
    if isinstance(left.slots, Unknown):
        return ()
    slots = _without(left.slots, waiting.pools)
    steps: list[WarmStep] = []
    counted = Counter(spare)
    for floor in sorted(floors, key=lambda floor: (floor.until, floor.occurrence)):
        pool = catalogue.serving(floor.labels)
        if pool is None or floor.until <= now or backs_off(floor, now) or barred(floor, pool):
            continue
        if pool.board in waiting.short:
            continue
        entity, installation = floor.scope.entity, floor.scope.installation_id
        limit = cap(entity)
        while counted[floor.key] < floor.runners:
            if limit is not None and left.held[entity.id] >= limit:
                break
            if left.runners.get(installation, 1) <= 0 or left.tries.refuse_spare(pool):
                break
            taken = slots.take(pool.selector, tolerations_of(pool))
            if taken is None:
                break
            node, slots = taken
            steps.append(WarmStep(floor, pool, node))
            counted[floor.key] += 1
            left.tries.take(pool)
            left.held[entity.id] += 1
            if installation in left.runners:
                left.runners[installation] -= 1
    return tuple(steps)


def kept_by_windows(
    floors: Iterable[Floor],
    workers: Iterable[Worker],
    short: frozenset[str],
    catalogue: Catalogue,
    now: datetime,
) -> frozenset[str]:
    """The idle workers that a window keeps, open or just ended; none on boards that waiting jobs are short of."""
    room: Counter[DemandKey] = Counter()
    ended: Counter[DemandKey] = Counter()
    for floor in floors:
        if now < floor.until + WARM_LINGERS:
            (room if now < floor.until else ended)[floor.key] += floor.runners
    room |= ended  # the window that follows takes over what is there, and does not add to it
    kept: set[str] = set()
    for worker in sorted(workers, key=lambda worker: (worker.created_at, worker.name), reverse=True):
        pool = catalogue.named(worker.pool)
        if worker.free and room[worker.key] > 0 and pool is not None and pool.board not in short:
            room[worker.key] -= 1
            kept.add(worker.name)
    return frozenset(kept)


def backs_off(floor: Floor, now: datetime) -> bool:
    """Whether the last spare runners ended so soon that the next one waits."""
    return floor.failed_at is not None and now < floor.failed_at + replacement_wait(floor)


def replacement_wait(floor: Floor) -> timedelta:
    """1, 2, 4 … 30 min; at most 4 when GitHub only removed an idle one."""
    if floor.failures < 1:
        return timedelta()
    longest = WARM_REPLACED_WITHIN if floor.removed else BACK_OFF_LAST
    return min(BACK_OFF_FIRST * float(2 ** min(floor.failures - 1, 10)), longest)


def tolerations_of(pool: Pool) -> list[Toleration]:
    """A pool's tolerations as capacity reads them."""
    return [Toleration.of(raw) for raw in pool.tolerations]


def _without(slots: SlotMap, pools: Iterable[Pool]) -> SlotMap:
    """Set a slot aside for every job that will want one soon."""
    for pool in pools:
        taken = slots.take(pool.selector, tolerations_of(pool))
        if taken is not None:
            _, slots = taken
    return slots
