"""Warm windows: spare runners that are kept ready after every pending job was served. Pure.

    missing(floor) = runners − (free workers of the key − pending jobs of the key)

A spare runner is a worker like any other: it obeys cap, holds, slots and requests, and the next job of its key takes
it. It never takes a board that a waiting job could use: not one that a job backs off from, lacks requests for, or gets
once its pool has been tried or GitHub has said where its code comes from. When a job waits for a board of its type, or
for a place under its entity's cap, an idle spare runner makes room at once.
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
class Want:
    """What one job waits for: the board of a worker, its place under the cap, or both at once."""

    board: str | None = None  # a board type without a free slot
    entity: int | None = None  # an entity that has as many workers as it may

    def met_by(self, worker: Worker, pool: Pool) -> bool:
        """Whether the end of that worker gives the job what it waits for."""
        return self.board in (None, pool.board) and self.entity in (None, worker.entity.id)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The jobs that got no worker now: which boards they still want."""

    pools: tuple[Pool, ...] = ()  # one entry for each job that will want a board of it soon
    wants: tuple[Want, ...] = ()  # one entry for each job that lacks a board or a place

    @property
    def short(self) -> frozenset[str]:
        """The board types that jobs lack."""
        return frozenset(want.board for want in self.wants if want.board and want.entity is None)


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
    short = waiting.short
    steps: list[WarmStep] = []
    counted = Counter(spare)
    for floor in sorted(floors, key=lambda floor: (floor.until, floor.occurrence)):
        pool = catalogue.serving(floor.labels)
        if pool is None or floor.until <= now or backs_off(floor, now) or barred(floor, pool):
            continue
        if pool.board in short:
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
    workers: Sequence[Worker],
    spare: Mapping[DemandKey, int],
    wants: Iterable[Want],
    ending: frozenset[str],
    catalogue: Catalogue,
    now: datetime,
) -> frozenset[str]:
    """The idle workers that a window keeps, open or just ended; no spare one that stands in the way of a job."""
    room: Counter[DemandKey] = Counter()
    ended: Counter[DemandKey] = Counter()
    for floor in floors:
        if now < floor.until + WARM_LINGERS:
            (room if now < floor.until else ended)[floor.key] += floor.runners
    room |= ended  # the window that follows takes over what is there, and does not add to it
    kept: set[str] = set()
    to_spare, different = Counter(spare), dict.fromkeys(wants)
    to_spare.subtract(worker.key for worker in workers if worker.name in ending)
    for worker in sorted(workers, key=_age, reverse=True):
        pool = catalogue.named(worker.pool)
        if not worker.free or pool is None or worker.name in ending:
            continue
        if to_spare[worker.key] > 0 and any(want.met_by(worker, pool) for want in different):
            to_spare[worker.key] -= 1
        elif room[worker.key] > 0:
            room[worker.key] -= 1
            kept.add(worker.name)
    return frozenset(kept)


def making_room(
    workers: Iterable[Worker], spare: Mapping[DemandKey, int], wants: Iterable[Want], catalogue: Catalogue
) -> frozenset[str]:
    """The idle spare runners to end now, one for each job that waits for what it takes up; oldest first.

    Whoever is about to go makes room as well, so that no second one ends for the same job.
    """
    going: list[tuple[Worker, Pool]] = []
    idle: list[tuple[Worker, Pool]] = []
    for worker in sorted(workers, key=_age):
        pool = catalogue.named(worker.pool)
        if pool is not None and _goes(worker):
            going.append((worker, pool))
        elif (
            pool is not None and worker.free and worker.warm_for is not None and worker.idle_since is not None
        ):
            idle.append((worker, pool))
    to_spare, ending, unmet = Counter(spare), set[str](), set[Want]()
    for want in wants:
        if not idle:
            break
        if want in unmet:
            continue
        gone = next((each for each in going if want.met_by(*each)), None)
        if gone is not None:
            going.remove(gone)
            continue
        able = (each for each in idle if to_spare[each[0].key] > 0 and want.met_by(*each))
        chosen = next(able, None)
        if chosen is None:
            unmet.add(want)
            continue
        idle.remove(chosen)
        to_spare[chosen[0].key] -= 1
        ending.add(chosen[0].name)
    return frozenset(ending)


def _goes(worker: Worker) -> bool:
    """Whether its place will be free without anybody's doing."""
    leaving = not worker.status.live or worker.ending_reason is not None or worker.job_ended_at is not None
    return worker.holds_pod and leaving


def _age(worker: Worker) -> tuple[datetime, str]:
    return worker.created_at, worker.name


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
