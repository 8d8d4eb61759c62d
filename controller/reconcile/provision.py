"""Provision: from a reserved row to a pod. Runs beside the loop, a bounded number at once.

    reserve and commit ─▶ group ─▶ JIT config ─▶ note it ─▶ Secret, pod, owner ─▶ note it

The row is committed before anything happens outside, so a crash at any arrow leaves something that sync_workers
or GitHubCleanup finds: a row without a pod, a runner without a live row, a pod whose row does not know it yet.
A create whose answer is lost leaves the same, if its runner cannot be deleted any more: the pod may be at work.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from controller.decide.demand import Step
from controller.decide.warm import WarmStep
from controller.domain.constants import NAME_TRIES
from controller.domain.orders import PodOrder
from controller.domain.reasons import Reason
from controller.domain.reservations import Reservation
from controller.domain.workers import NAME_ALPHABET, NAME_SUFFIX_LENGTH
from controller.errors import (
    ClusterError,
    ClusterRefused,
    ClusterUnavailable,
    ControllerError,
    GitHubConflict,
    GitHubError,
    GitHubRefused,
    GitHubUnavailable,
    LeadershipLost,
    clip,
)
from controller.ports import Clock, Cluster, GitHub, JitRunner, Random, Workers
from controller.reconcile.beside import Beside
from controller.settings import File
from controller.telemetry.metrics import Metrics
from controller.telemetry.milestones import Milestones
from controller.telemetry.redaction import redact

log = structlog.get_logger()

WORK = "provision "  # before the worker's name: what this is called beside the loop
OWN_FAULT = (ClusterRefused, GitHubRefused)
MAYBE_REGISTERED = (GitHubUnavailable, GitHubConflict)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A step with its reserved name."""

    step: Step | WarmStep
    name: str
    epoch: int
    held: frozenset[str]


class Provisioner:
    """Carries out the steps of demand_match."""

    def __init__(
        self,
        file: File,
        github: GitHub,
        cluster: Cluster,
        workers: Workers,
        clock: Clock,
        rng: Random,
        metrics: Metrics,
        beside: Beside,
    ) -> None:
        self._file = file
        self._github = github
        self._cluster = cluster
        self._workers = workers
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._milestones = Milestones(metrics)
        self._beside = beside
        self._places = asyncio.Semaphore(file.limits.provision_concurrency)

    @property
    def in_flight(self) -> frozenset[str]:
        """The workers whose provisioning is under way."""
        return frozenset(name.removeprefix(WORK) for name in self._beside.under_way if name.startswith(WORK))

    async def start(self, steps: Sequence[Step | WarmStep], epoch: int, held: frozenset[str]) -> int:
        """Reserve a name for every step and begin; how many were begun."""
        begun = 0
        waiting = list(steps)
        for _ in range(NAME_TRIES):
            if not waiting:
                break
            orders = {order.name: (order, step) for step in waiting if (order := self._reservation(step))}
            reserved = await self._workers.reserve(
                [order for order, _ in orders.values()], epoch, self._clock.now()
            )
            for name, (_, step) in orders.items():  # in the plan's order, since only some begin at once
                if name in reserved.written:
                    self._begin(_Ordered(step, name, epoch, held))
            begun += len(reserved.written)
            waiting = [orders[name][1] for name in reserved.taken]
        return begun

    def _reservation(self, step: Step | WarmStep) -> Reservation:
        need = step.need
        scope = need.scope
        suffix = "".join(self._rng.choice(NAME_ALPHABET) for _ in range(NAME_SUFFIX_LENGTH))
        return Reservation(
            name=self._file.names.name(suffix),
            entity=scope.entity,
            app_id=scope.app_id,
            installation_id=scope.installation_id,
            labels=need.labels,
            pool=step.pool.name,
            image=step.pool.image,
            made_for=need.job_id,
            repo=scope.repo,
            max_workers=self._file.entities.limits(scope.entity.name, scope.entity.id).max_workers,
            warm_for=need.warm_for,
        )

    def _begin(self, ordered: _Ordered) -> None:
        self._beside.start(WORK + ordered.name, lambda: self._run(ordered))

    async def _run(self, ordered: _Ordered) -> bool:
        """One worker, to its pod or to its failure; True if it failed, so that its job is tried again."""
        try:
            async with self._places:
                await self._provision(ordered)
            return False
        except (GitHubError, ClusterError) as error:
            return await self._give_up(ordered, error)

    async def _provision(self, ordered: _Ordered) -> None:
        need, name, epoch = ordered.step.need, ordered.name, ordered.epoch
        began = self._clock.now()
        self._stage("reserved", need.since or began, began)
        group_id = await self._github.ensure_runner_group(need.scope)
        try:
            jit = await self._github.create_jit_runner(need.scope, name, need.labels, group_id)
        except MAYBE_REGISTERED:
            await self._remove_runner(ordered, None)
            raise
        now = self._clock.now()
        self._stage("jit", began, now)
        try:
            held = await self._workers.note_runner(name, group_id, jit.runner.id, epoch, now)
        except LeadershipLost:  # whoever leads now may have ended the row before this runner existed
            await self._remove_runner(ordered, jit.runner.id)
            raise
        try:
            order = self._order(ordered, jit, held)
            created = await self._cluster.provision_runner(order, jit.config)
        except ClusterError as error:
            removed = await self._remove_runner(ordered, jit.runner.id)
            if not removed and isinstance(error, ClusterUnavailable):
                log.warning("provision.left_open", worker=name, error=str(error))
                return  # OrphanSweep finds its pod, or undoes what there is
            await self._remove_secret(name)
            raise
        self._stage("pod", now, self._clock.now())
        await self._workers.note_pod(name, created.resource_version, epoch, self._clock.now())
        log.info("worker.provisioned", worker=name, pool=ordered.step.pool.name, job_id=need.job_id)

    def _stage(self, stage: str, since: datetime, until: datetime) -> None:
        self._milestones.stage(stage, since, until)

    async def _remove_runner(self, ordered: _Ordered, runner_id: int | None) -> bool:
        """Whether it is gone; what stays behind of an ended row is found by GitHubCleanup."""
        scope = ordered.step.need.scope
        try:
            if runner_id is None:
                found = await self._github.find_runner(scope, ordered.name)
                runner_id = found.id if found else None
            if runner_id is not None:
                await self._github.delete_runner(scope, runner_id)
        except GitHubError as error:
            log.info("provision.runner_left", worker=ordered.name, error=str(error))
            return False
        return True

    async def _remove_secret(self, name: str) -> None:
        """Best effort: what stays behind is swept."""
        try:
            await self._cluster.delete_secret(name)
        except ClusterError as error:
            log.info("provision.secret_left", worker=name, error=str(error))

    async def _give_up(self, ordered: _Ordered, error: ControllerError) -> bool:
        """The worker has failed; its job is tried again, at once or later."""
        why = clip(redact(str(error)))
        log.warning("worker.provision_failed", worker=ordered.name, error=why)
        failed = await self._workers.fail(
            ordered.name,
            Reason.PROVISION_FAILED,
            {"error": type(error).__name__, "message": why},
            own_fault=isinstance(error, OWN_FAULT),
            epoch=ordered.epoch,
            now=self._clock.now(),
        )
        if failed:
            self._metrics.worker_failures_total.labels(Reason.PROVISION_FAILED.value).inc()
        return failed

    def _order(self, ordered: _Ordered, jit: JitRunner, held: frozenset[str]) -> PodOrder:
        """The pod to make, away from what was held when the step was decided and what is held by now."""
        need, pool = ordered.step.need, self._file.pool_named(ordered.step.pool.name)
        if pool is None:
            raise ClusterRefused(f"pool {ordered.step.pool.name} is not in the settings")
        storage = pool.ephemeral_storage
        return PodOrder(
            name=ordered.name,
            instance=self._file.instance,
            image=pool.image,
            pool=pool.name,
            board=pool.board,
            entity=need.scope.entity,
            app_id=need.scope.app_id,
            installation_id=need.scope.installation_id,
            labels=need.labels,
            board_label=self._file.kubernetes.board_label,
            resource=self._file.kubernetes.resource,
            repo=need.repo,
            job_url=need.url or None,
            runner_id=jit.runner.id,
            image_pull_policy=pool.pull_policy,
            image_pull_secrets=pool.image_pull_secrets,
            node_selector=pool.node_selector,
            held_nodes=sorted(ordered.held | held),
            tolerations=pool.tolerations,
            env=pool.env,
            requests=pool.resources.get("requests", {}),
            limits=pool.resources.get("limits", {}),
            ephemeral_request=storage.request if storage else None,
            ephemeral_limit=storage.limit if storage else None,
            active_deadline_seconds=int(self._file.timings.pod_active_deadline.total_seconds()),
            privileged=pool.privileged,
            host_network=pool.host_network,
        )
