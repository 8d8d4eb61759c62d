"""demand_match: observe jobs, workers and boards, decide in `decide.demand`, keep the reasons, begin the steps."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache

from controller.decide.breaker import Breakers
from controller.decide.capacity import Claim, SlotMap, Toleration, free_slots
from controller.decide.demand import Funds, Plan, Share, Situation, Step, match_demand
from controller.decide.probes import Probes, place_probes
from controller.decide.warm import WarmStep
from controller.domain.budgets import Scarce
from controller.domain.constants import JIT_PER_MINUTE
from controller.domain.jobs import Entity
from controller.domain.pools import Pool
from controller.domain.schedules import Floor
from controller.domain.sightings import Unknown
from controller.domain.supply import Supply
from controller.domain.views import Spares
from controller.domain.workers import Worker
from controller.ports import Budget, Clock, Cluster, Demand, GitHub, Jobs
from controller.reconcile.forks import ForkGate
from controller.reconcile.gauges import Gauges
from controller.reconcile.provision import Provisioner
from controller.settings import File

NO_PROBES = Probes({}, frozenset(), frozenset())
NOT_MATCHED = Unknown("no jobs have been matched yet")


class DemandMatch:
    """One step of the loop."""

    def __init__(
        self,
        file: File,
        demand: Demand,
        jobs: Jobs,
        github: GitHub,
        cluster: Cluster,
        provisioner: Provisioner,
        clock: Clock,
        gauges: Gauges,
        breakers: Callable[[], Breakers],
        forks: ForkGate | None,
    ) -> None:
        self._file = file
        self._catalogue = file.catalogue
        self._demand = demand
        self._jobs = jobs
        self._github = github
        self._cluster = cluster
        self._provisioner = provisioner
        self._clock = clock
        self._gauges = gauges
        self._breakers = breakers
        self._forks = forks  # None: pull requests from forks may run
        self.slots: SlotMap | Unknown = (
            NOT_MATCHED  # as the last match left them: the decision that pages show
        )
        self.spares = Spares()

    async def run(self, epoch: int) -> Plan:
        """Match once: reasons are stored, steps are begun."""
        plan, probes, held = await self._match()
        self.spares = Spares(plan.kept, plan.ending)
        now = self._clock.now()
        await self._jobs.store_skips(_changed(plan), epoch, now)
        made: list[Step | WarmStep] = [*plan.steps, *plan.warm]
        for away, steps in _by_what_they_avoid(made, held | probes.closed, probes.tried).items():
            await self._provisioner.start(steps, epoch, away)
        return plan

    async def plan(self) -> Plan:
        """What the next iteration would do, read-only."""
        plan, _, _ = await self._match()
        return plan

    async def _match(self) -> tuple[Plan, Probes, frozenset[str]]:
        now = self._clock.now()
        seen = await self._demand.read(now)
        floors = tuple(floor for floor in seen.floors if self._may_be_warm(floor))
        held, breakers = seen.holds.boards(now), self._breakers()
        allowed = cache(self._file.access.allows)
        probes, slots = self._slots(seen.workers, held, breakers.boards)
        situation = Situation(
            now=now,
            jobs=seen.jobs,
            workers=seen.workers,
            slots=slots,
            catalogue=self._catalogue,
            share=cache(self._share),  # thousands of jobs, a few owners
            allowed=lambda job: allowed(job.entity.name, job.repo),
            apps={app_id: kind for kind, app_id in self._file.apps_by_type.items()},
            funds=self._funds(seen, now),
            holds=seen.holds,
            suspended=seen.suspended,
            forks=self._forks.judge(seen.jobs) if self._forks is not None else {},
            trials=breakers.trials,
            fair=self._file.scheduling == "fair",
            floors=floors,
        )
        plan = match_demand(situation)
        if not isinstance(slots, Unknown):
            slots = slots.promise([*(step.node for step in plan.steps), *(step.node for step in plan.warm)])
        self.slots = slots
        self._gauges.show(seen, slots, now)
        return plan, probes, held

    def _funds(self, seen: Supply, now: datetime) -> dict[int, Funds]:
        """What every installation may still ask; calls that reserved workers are about to make are spent already."""
        coming = Counter(w.installation_id for w in seen.workers if w.status.live and w.unregistered)
        installations = {job.installation_id for job in seen.jobs}
        installations |= {floor.scope.installation_id for floor in seen.floors}
        return {each: funds_of(self._github.budget(each), now, coming[each]) for each in installations}

    def _share(self, entity: Entity) -> Share:
        limits = self._file.entities.limits(entity.name, entity.id)
        return Share(limits.max_workers, limits.priority)

    def _may_be_warm(self, floor: Floor) -> bool:
        return self._file.access.allows(floor.scope.entity.name, floor.scope.repo or "")

    def _slots(
        self, workers: Sequence[Worker], held: frozenset[str], probing: frozenset[str]
    ) -> tuple[Probes, SlotMap | Unknown]:
        """Reserved workers whose pod the view does not show yet hold a slot of their pool."""
        pods, nodes = self._cluster.pods(), self._cluster.nodes()
        if isinstance(pods, Unknown):
            return NO_PROBES, pods
        if isinstance(nodes, Unknown):
            return NO_PROBES, nodes
        claims = [
            claim_of(pool)
            for worker in workers
            if worker.holds_pod
            and worker.name not in pods.pods
            and (pool := self._catalogue.named(worker.pool)) is not None
        ]
        every = {pool.name: claim_of(pool) for pool in self._catalogue.pools}
        probes = place_probes(nodes, pods, workers, probing, every)
        closed = held | probes.closed
        return probes, free_slots(nodes, pods, claims, closed, list(every.values()), probes.offers)


def _by_what_they_avoid(
    steps: Iterable[Step | WarmStep], held: frozenset[str], tried: frozenset[str]
) -> dict[frozenset[str], list[Step | WarmStep]]:
    """A board that is tried is avoided by every step but the one that tries it."""
    grouped: dict[frozenset[str], list[Step | WarmStep]] = defaultdict(list)
    for step in steps:
        grouped[held | (tried - {step.node})].append(step)
    return grouped


def claim_of(pool: Pool) -> Claim:
    """Where pods of a pool may go."""
    return Claim(pool.selector, [Toleration.of(raw) for raw in pool.tolerations])


def funds_of(budget: Budget, now: datetime, coming: int) -> Funds:
    """Provisioning is the last class to stop: only a refusal, or the end of the budget, ends it."""
    used_up = budget.limit > 0 and budget.remaining <= 0
    if budget.blocked_until is not None and budget.blocked_until > now:
        return Funds(0, budget.blocked_until, Scarce.HOURLY if used_up else Scarce.SECONDARY)
    if budget.limit and budget.remaining < budget.jit_allowance:
        return Funds(max(0, budget.remaining - coming), budget.resets_at, Scarce.HOURLY)
    left = budget.jit_allowance - coming
    return Funds(max(0, left), _paced_until(now, max(1, 1 - left)), Scarce.PACE)


def _paced_until(now: datetime, calls: int) -> datetime:
    """When the pace allows so many calls more, on the full minute: a stored reason should not change every second."""
    at = now + calls * timedelta(minutes=1) / JIT_PER_MINUTE
    return at.replace(second=0, microsecond=0) + timedelta(minutes=1)


def _changed(plan: Plan) -> list[tuple[int, str | None, dict[str, object], str | None]]:
    """Only what differs from the stored decision is written."""
    rows: list[tuple[int, str | None, dict[str, object], str | None]] = []
    for skip in plan.skips:
        if (skip.job.skip_reason, skip.job.skip_detail) != (skip.reason.value, skip.detail):
            rows.append((skip.job.job_id, skip.reason.value, skip.detail, skip.job.pool))
    for step in plan.steps:
        if step.job.skip_reason is not None or step.job.pool != step.pool.name:
            rows.append((step.job.job_id, None, {}, step.pool.name))
    return rows
