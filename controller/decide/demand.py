"""demand_match: which pending jobs get a new worker now, and why the others do not. Pure.

    unmet(key) = pending jobs (confirmed, unmarked) − workers that are alive, not ending, bound to no job

Jobs are served by their entity's priority, then by age; with `fair`, among equal priorities the entity with the
fewest workers comes first. GitHub hands any matching runner to any matching job of a key, so the jobs of a key that
its free workers were made for, and then its oldest, are taken to be covered by them.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from controller.decide.capacity import SlotMap, Toleration
from controller.decide.trials import Trial, Tries
from controller.decide.warm import (
    Leftover,
    Waiting,
    Want,
    WarmStep,
    kept_by_windows,
    making_room,
    tolerations_of,
    top_up,
)
from controller.domain.budgets import Scarce
from controller.domain.constants import NOT_PICKED_UP_AFTER, STRANGERS_AFTER
from controller.domain.holds import Hold, Holds, HoldScope, longest
from controller.domain.jobs import DemandKey, Entity, EntityType, Job, Mark
from controller.domain.pools import Catalogue, Pool
from controller.domain.reasons import Skip
from controller.domain.reservations import Need
from controller.domain.schedules import Floor
from controller.domain.sightings import Unknown
from controller.domain.workers import Worker

NO_DEMAND = {Skip.CANCELLED, Skip.GAVE_UP, Skip.NOT_CONFIRMED, Skip.NOT_ALLOWED}
FORK = {"why": "its code comes from a fork"}
ASKING = {"why": "GitHub is asked whether its code comes from a fork"}


@dataclass(frozen=True, slots=True)
class Share:
    """What one entity may have. `max_workers` None: no limit."""

    max_workers: int | None
    priority: int


@dataclass(frozen=True, slots=True)
class Funds:
    """How many runners an installation's request limits allow right now, and what allows no more until when."""

    runners: int
    until: datetime | None = None
    why: Scarce = Scarce.HOURLY

    @property
    def detail(self) -> dict[str, Any]:
        """What the sentence needs."""
        return {"why": self.why.value, "until": self.until.isoformat() if self.until else None}


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the matching depends on."""

    now: datetime
    jobs: Sequence[Job]  # pending, oldest first
    workers: Sequence[Worker]  # live, or still holding a pod
    slots: SlotMap | Unknown
    catalogue: Catalogue
    share: Callable[[Entity], Share]
    allowed: Callable[[Job], bool]
    apps: Mapping[str, EntityType]  # which kind of account each App is for
    funds: Mapping[int, Funds] = field(default_factory=dict)
    holds: Holds = field(default_factory=Holds)
    suspended: frozenset[int] = frozenset()
    forks: Mapping[int, bool | None] = field(default_factory=dict)  # by run; None: not known yet
    trials: Mapping[str, Trial] = field(default_factory=dict)  # pools that have yet to show that they work
    fair: bool = False
    floors: Sequence[Floor] = ()  # open warm windows


@dataclass(frozen=True, slots=True)
class Step:
    """Make a worker for this job's key; a slot of `node` was set aside for it."""

    job: Job
    pool: Pool
    node: str

    @property
    def need(self) -> Need:
        """What the worker is made for."""
        job = self.job
        return Need(job.scope, job.labels, job.repo, job_id=job.job_id, url=job.html_url, since=job.seen_at)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why a job gets no worker now; `detail` fills the sentence on pages."""

    job: Job
    reason: Skip
    detail: dict[str, Any] = field(default_factory=dict)
    soon: bool = False  # it will want a board before long, without anybody's doing


@dataclass(frozen=True, slots=True)
class Plan:
    """What demand_match decided: every pending job is in exactly one of the two."""

    steps: tuple[Step, ...]
    skips: tuple[Skipped, ...]
    warm: tuple[WarmStep, ...] = ()  # spare workers, after all pending jobs
    kept: frozenset[str] = frozenset()  # idle workers that a warm window keeps
    ending: frozenset[str] = frozenset()  # idle workers that are to get no job, or stand in the way of one


def match_demand(situation: Situation) -> Plan:
    """Give every pending job a step or the first skip reason that applies."""
    skips: list[Skipped] = []
    wanting: dict[DemandKey, list[Job]] = defaultdict(list)
    pending: Counter[DemandKey] = Counter()
    for job in situation.jobs:
        barred = _barred(job, situation)
        if barred is None or barred.reason not in NO_DEMAND:
            pending[job.key] += 1
        if barred is None:
            wanting[job.key].append(job)
        else:
            skips.append(barred)
    leaving = _leaving(situation)
    staying = [worker for worker in situation.workers if worker.name not in leaving]
    free = _free_by_key(staying, situation.now)
    uncovered: list[Job] = []
    idle: set[DemandKey] = set()  # GitHub does not give these jobs to the runners that are there
    for key, jobs in wanting.items():
        supply = free.get(key, ())
        stuck = _not_picked_up(supply, min(job.created_at for job in jobs), situation.now)
        if stuck:
            idle.add(key)
        unmet = max(0, pending[key] - len(supply))
        theirs = {worker.made_for for worker in supply}
        jobs.sort(key=lambda job: job.job_id not in theirs)  # one worker at a time is made for a job, so that
        own = sum(job.job_id in theirs for job in jobs)  # an outage counts once, also while others back off
        covered = len(jobs) if stuck else max(own, len(jobs) - unmet)
        reason, detail = _covering(supply, stuck)
        skips.extend(Skipped(job, reason, detail) for job in jobs[:covered])
        uncovered.extend(jobs[covered:])
    server = _Server(situation)
    steps, refused = server.serve(uncovered)
    plan = Plan(tuple(steps), tuple(skips + refused), ending=leaving)
    taking = {key: count for key, count in pending.items() if key not in idle}
    return _with_warm(plan, situation, server.leftover(), staying, free, taking) if situation.floors else plan


def _with_warm(
    plan: Plan,
    situation: Situation,
    left: Leftover,
    workers: Sequence[Worker],
    free: Mapping[DemandKey, Sequence[Worker]],
    pending: Mapping[DemandKey, int],
) -> Plan:
    """The plan with the spare workers of warm windows, which come after all pending jobs."""
    catalogue, now = situation.catalogue, situation.now
    waiting = _waiting(plan.skips, catalogue, left.slots)
    spare = {
        floor.key: max(0, len(free.get(floor.key, ())) - pending.get(floor.key, 0))
        for floor in situation.floors
    }

    def barred(floor: Floor, pool: Pool) -> bool:
        gone = floor.scope.installation_id in situation.suspended
        return gone or _held(floor.scope.entity, pool, situation) is not None

    def cap(entity: Entity) -> int | None:
        return situation.share(entity).max_workers

    warm = top_up(situation.floors, spare, left, waiting, catalogue, cap, barred, now)
    room = making_room(workers, spare, waiting.wants, catalogue)
    ours = [worker for worker in workers if not _works_for_a_stranger(worker, now)]
    kept = kept_by_windows(situation.floors, ours, spare, waiting.wants, room, catalogue, now)
    return replace(plan, warm=warm, kept=kept, ending=plan.ending | room)


def _waiting(skips: Iterable[Skipped], catalogue: Catalogue, slots: SlotMap | Unknown) -> Waiting:
    """Which boards and places the jobs still want that got none."""
    pools: list[Pool] = []
    wants: list[Want] = []
    for skip in skips:
        pool = catalogue.serving(skip.job.labels)
        if pool is None:
            continue
        if skip.soon:
            pools.append(pool)
        if skip.reason is Skip.NO_FREE_SLOTS:
            wants.append(Want(board=pool.board))
        if skip.reason is Skip.ENTITY_AT_MAX_WORKERS and not isinstance(slots, Unknown):
            taken = slots.take(pool.selector, tolerations_of(pool))
            if taken is not None:
                _, slots = taken
            wants.append(Want(pool.board if taken is None else None, skip.job.entity.id))
    return Waiting(tuple(pools), tuple(wants))


def _barred(job: Job, situation: Situation) -> Skipped | None:
    """The first reason that lies in the job itself, its owner or its pool."""
    pool = situation.catalogue.serving(job.labels)
    if job.mark is not None:
        return Skipped(job, Skip.CANCELLED if job.mark is Mark.CANCELLED else Skip.GAVE_UP, _last(job))
    if not job.confirmed:
        return Skipped(job, Skip.NOT_CONFIRMED)
    if not situation.allowed(job):
        return Skipped(job, Skip.NOT_ALLOWED)
    if job.run_id in situation.forks and situation.forks[job.run_id] is not False:
        denied = situation.forks[job.run_id]
        if denied:
            return Skipped(job, Skip.NOT_ALLOWED, FORK)
        return Skipped(job, Skip.NOT_CONFIRMED, ASKING, soon=True)
    if situation.apps.get(job.app_id) is not job.entity.type:
        return Skipped(job, Skip.WRONG_APP, {"app": job.app_id, "entity_type": job.entity.type.value})
    if job.installation_id in situation.suspended:
        return Skipped(job, Skip.INSTALLATION_SUSPENDED)
    if pool is None:
        nearest = situation.catalogue.nearest(job.labels)
        return Skipped(job, Skip.NO_POOL, {"nearest": list(nearest) if nearest else None})
    hold = _held(job.entity, pool, situation)
    if hold is not None:
        return Skipped(job, Skip.HELD, hold.detail)
    if job.retry_after is not None and job.retry_after > situation.now:
        return Skipped(job, Skip.BACKING_OFF, {**_last(job), "until": job.retry_after.isoformat()}, soon=True)
    return None


def _held(entity: Entity, pool: Pool, situation: Situation) -> Hold | None:
    """Of both what holds longest: when the other ends, the job goes on waiting."""
    targets = ((HoldScope.POOL, pool.name), (HoldScope.ENTITY, entity.name.lower()))
    found = (situation.holds.on(scope, target, situation.now) for scope, target in targets)
    return longest(hold for hold in found if hold is not None)


def _last(job: Job) -> dict[str, Any]:
    return {"attempts": job.attempts, "last_failure": job.last_failure}


def _leaving(situation: Situation) -> frozenset[str]:
    """The idle workers that are to get no job any more: their board is drained, their pool or owner held.

    GitHub would give them the next job all the same. One that is not online yet is left to come: it may be what a job
    waits for, and ends like these once it idles.
    """
    holds, now = situation.holds, situation.now

    def sent_away(worker: Worker) -> bool:
        return (
            holds.empties(HoldScope.POOL, worker.pool, now)
            or holds.empties(HoldScope.ENTITY, worker.entity.name.lower(), now)
            or (worker.node is not None and holds.empties(HoldScope.BOARD, worker.node, now))
        )

    idle = (worker for worker in situation.workers if worker.free and worker.idle_since is not None)
    return frozenset(worker.name for worker in idle if sent_away(worker))


def _free_by_key(workers: Iterable[Worker], now: datetime) -> Mapping[DemandKey, list[Worker]]:
    free: dict[DemandKey, list[Worker]] = defaultdict(list)
    for worker in workers:
        if worker.free and not _works_for_a_stranger(worker, now):
            free[worker.key].append(worker)
    return free


def _works_for_a_stranger(worker: Worker, now: datetime) -> bool:
    """Whether GitHub has given it a job that we do not hear of, as of a repository without our App."""
    return worker.busy_since is not None and now - worker.busy_since >= STRANGERS_AFTER


def _not_picked_up(supply: Sequence[Worker], queued_at: datetime, now: datetime) -> bool:
    """Whether a runner has been idle beside a queued job for so long that another one would not help."""
    return any(
        w.idle_since is not None and now - max(w.idle_since, queued_at) >= NOT_PICKED_UP_AFTER for w in supply
    )


def _covering(supply: Sequence[Worker], stuck: bool) -> tuple[Skip, dict[str, Any]]:
    """Why the jobs that these workers were made for get no other one: the same words for all of a key."""
    if stuck:
        idle = [w.name for w in supply if w.idle_since is not None]
        return Skip.NOT_PICKED_UP, {"workers": sorted(idle)[:5]}
    stages = dict(sorted(Counter(_stage(worker) for worker in supply).items()))
    names = sorted(worker.name for worker in supply)[:5]
    return Skip.RUNNER_ON_ITS_WAY, {"workers": len(supply), "stages": stages, "names": names}


def _stage(worker: Worker) -> str:
    if worker.pod_ended_at is not None:
        return "ended"
    if worker.online_at is not None:
        return "online"
    if worker.running_at is not None:
        return "running"
    if worker.pod_at is not None:
        return "pod"
    return "jit" if worker.jit_at is not None else "reserved"


class _Server:
    """Serves jobs one by one; every step takes a slot, a place under the cap and a request."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._slots = situation.slots
        self._held = Counter(w.entity.id for w in situation.workers if w.holds_pod)
        self._runners = {installation: funds.runners for installation, funds in situation.funds.items()}
        self._tries = Tries(situation.trials, situation.workers, situation.catalogue, situation.now)
        self._full: dict[str, dict[str, Any]] = {}  # pools without a free slot, and what holds their boards

    def serve(self, jobs: Iterable[Job]) -> tuple[list[Step], list[Skipped]]:
        """Take the jobs in order of their turn."""
        steps: list[Step] = []
        skips: list[Skipped] = []
        for job in self._in_turn(jobs):
            served = self._serve(job)
            if isinstance(served, Step):
                steps.append(served)
            else:
                skips.append(served)
        return steps, skips

    def leftover(self) -> Leftover:
        """What the jobs that were served have left over."""
        return Leftover(self._slots, self._held, self._runners, self._tries)

    def _in_turn(self, jobs: Iterable[Job]) -> Iterable[Job]:
        """By priority, then (fair) by how many workers the entity has by now, then by age."""
        queues: dict[int, list[Job]] = defaultdict(list)
        for job in sorted(jobs, key=lambda job: (job.created_at, job.job_id), reverse=True):
            queues[job.entity.id].append(job)  # the oldest is at the end
        turns = [self._turn(queue[-1]) for queue in queues.values()]
        heapq.heapify(turns)
        while turns:
            turn = heapq.heappop(turns)
            queue = queues[turn[-1]]
            now = self._turn(queue[-1])
            if now != turn:
                heapq.heappush(turns, now)
                continue
            yield queue.pop()
            if queue:
                heapq.heappush(turns, self._turn(queue[-1]))

    def _turn(self, job: Job) -> tuple[int, int, datetime, int, int]:
        share = self._situation.share(job.entity)
        held = self._held[job.entity.id] if self._situation.fair else 0
        return -share.priority, held, job.created_at, job.job_id, job.entity.id

    def _serve(self, job: Job) -> Step | Skipped:
        pool = self._situation.catalogue.serving(job.labels)
        if pool is None:  # barred before; kept so that no type is asserted
            return Skipped(job, Skip.NO_POOL)
        cap = self._situation.share(job.entity).max_workers
        if cap is not None and self._held[job.entity.id] >= cap:
            return Skipped(job, Skip.ENTITY_AT_MAX_WORKERS, {"max_workers": cap})
        trial = self._tries.refuse(pool)
        if trial is not None:
            return Skipped(job, Skip.HELD, trial.detail(pool.name), soon=True)
        if isinstance(self._slots, Unknown):
            return Skipped(job, Skip.CLUSTER_UNKNOWN, {"why": self._slots.why})
        if pool.name in self._full:
            return Skipped(job, Skip.NO_FREE_SLOTS, self._full[pool.name])
        tolerations = [Toleration.of(raw) for raw in pool.tolerations]
        taken = self._slots.take(pool.selector, tolerations)
        if taken is None:
            boards = self._slots.boards(pool.selector, tolerations)
            states = {state.value: count for state, count in sorted(boards.states.items())}
            self._full[pool.name] = {"board": pool.board, "boards": boards.total, "states": states}
            return Skipped(job, Skip.NO_FREE_SLOTS, self._full[pool.name])
        funds = self._situation.funds.get(job.installation_id)
        if funds is not None and self._runners[job.installation_id] <= 0:
            return Skipped(job, Skip.GITHUB_BUDGET_LOW, funds.detail, soon=True)
        if funds is not None:
            self._runners[job.installation_id] -= 1
        self._tries.take(pool)
        node, self._slots = taken
        self._held[job.entity.id] += 1
        return Step(job, pool, node)
