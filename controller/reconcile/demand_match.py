"""demand_match: observe jobs, workers and boards, decide in `decide.demand`, keep the reasons, begin the steps."""

from collections.abc import Callable, Sequence
from datetime import datetime

from controller.decide.capacity import Claim, SlotMap, Toleration, free_slots
from controller.decide.demand import Funds, Plan, Share, Situation, match_demand
from controller.domain.constants import PROVISION_ONLY_SHARE
from controller.domain.jobs import Entity, Job
from controller.domain.pools import Pool
from controller.domain.sightings import Unknown
from controller.domain.workers import Worker
from controller.ports import Budget, Clock, Cluster, Demand, GitHub, Jobs
from controller.reconcile.gauges import Gauges
from controller.reconcile.provision import Provisioner
from controller.settings import File


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
        probing: Callable[[], frozenset[str]],
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
        self._probing = probing
        self.held: frozenset[str] = frozenset()  # the boards that were held at the last match

    async def run(self, epoch: int) -> Plan:
        """Match once: reasons are stored, steps are begun."""
        plan, self.held = await self.plan()
        now = self._clock.now()
        await self._jobs.store_skips(_changed(plan), epoch, now)
        if plan.steps:
            await self._provisioner.start(plan.steps, epoch, self.held)
        return plan

    async def plan(self) -> tuple[Plan, frozenset[str]]:
        """What the next iteration would do, read-only; and the boards that are held."""
        now = self._clock.now()
        seen = await self._demand.read()
        installations = {job.installation_id for job in seen.jobs}
        held = seen.holds.boards(now)
        situation = Situation(
            now=now,
            jobs=seen.jobs,
            workers=seen.workers,
            slots=self._slots(seen.workers, held),
            catalogue=self._catalogue,
            share=self._share,
            allowed=self._allowed,
            apps={app_id: kind for kind, app_id in self._file.apps_by_type.items()},
            funds={each: funds_of(self._github.budget(each), now) for each in installations},
            holds=seen.holds,
            suspended=seen.suspended,
            probing=self._probing(),
            fair=self._file.scheduling == "fair",
        )
        self._gauges.show(seen, situation.slots, now)
        return match_demand(situation), held

    def _share(self, entity: Entity) -> Share:
        limits = self._file.entities.limits(entity.name, entity.id)
        return Share(limits.max_workers, limits.priority)

    def _allowed(self, job: Job) -> bool:
        return self._file.access.allows(job.entity.name, job.repo)

    def _slots(self, workers: Sequence[Worker], held: frozenset[str]) -> SlotMap | Unknown:
        """Reserved workers whose pod the view does not show yet hold a slot of their pool."""
        pods, nodes = self._cluster.pods(), self._cluster.nodes()
        if isinstance(pods, Unknown):
            return pods
        if isinstance(nodes, Unknown):
            return nodes
        claims = [
            claim_of(pool)
            for worker in workers
            if worker.holds_pod
            and worker.name not in pods.pods
            and (pool := self._catalogue.named(worker.pool)) is not None
        ]
        every = [claim_of(pool) for pool in self._catalogue.pools]
        return free_slots(nodes, pods, claims, held, every)


def claim_of(pool: Pool) -> Claim:
    """Where pods of a pool may go."""
    return Claim(pool.selector, [Toleration.of(raw) for raw in pool.tolerations])


def funds_of(budget: Budget, now: datetime) -> Funds:
    """Provisioning is the last class to stop: only a refusal, or the end of the budget, ends it."""
    if budget.blocked_until is not None and budget.blocked_until > now:
        return Funds(0, budget.blocked_until)
    if budget.limit and budget.remaining <= 0 < budget.limit * PROVISION_ONLY_SHARE:
        return Funds(0, budget.resets_at)
    return Funds(budget.jit_allowance, None)


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
