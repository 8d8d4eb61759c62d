"""The step itself: observe without the lock, decide and write under it, act after it."""

from collections.abc import Awaitable, Callable

import structlog

from controller.decide.leftovers import find_lost_secrets
from controller.domain.changes import Decided, Effect, Fail, Finish
from controller.domain.constants import SECRET_SWEEP_AGE
from controller.domain.sightings import PodView, Unknown
from controller.domain.views import View
from controller.domain.workers import Adopted, Worker
from controller.errors import ClusterError
from controller.ports import Clock, Cluster, GitHub, LockedWorkers, Workers
from controller.reconcile.sync_workers.delete_terminal_pods import delete_terminal_pods
from controller.reconcile.sync_workers.effects import Effects
from controller.reconcile.sync_workers.github_cleanup import GitHubCleanup
from controller.reconcile.sync_workers.health_checks import health_checks
from controller.reconcile.sync_workers.orphan_sweep import orphan_sweep
from controller.reconcile.sync_workers.pod_phase_sync import pod_phase_sync
from controller.reconcile.sync_workers.runner_lists import RunnerLists
from controller.reconcile.sync_workers.unreachable_node_check import unreachable_node_check
from controller.settings import File
from controller.telemetry.metrics import Metrics

log = structlog.get_logger()

Phase = Callable[[View, LockedWorkers], Awaitable[tuple[View, Decided]]]


class SyncWorkers:
    """One step of the loop."""

    def __init__(
        self,
        file: File,
        github: GitHub,
        cluster: Cluster,
        workers: Workers,
        clock: Clock,
        metrics: Metrics,
        in_flight: Callable[[], frozenset[str]],
    ) -> None:
        self._limits = file.health_limits
        self._cluster = cluster
        self._workers = workers
        self._clock = clock
        self._metrics = metrics
        self._in_flight = in_flight
        self._cleanup = GitHubCleanup(file.names)
        self._lists = RunnerLists(github, workers, self._limits, self._cleanup.suspects)
        self._effects = Effects(github, cluster, workers, clock, metrics)
        self._swept_at = clock.now()
        self._phases: tuple[Phase, ...] = (
            orphan_sweep,
            pod_phase_sync,
            unreachable_node_check,
            health_checks,
            self._cleanup.run,
            delete_terminal_pods,
        )

    async def run(self, epoch: int) -> None:
        """Bring rows, pods and runners into agreement once."""
        began = self._clock.now()
        pods, nodes = self._cluster.pods(), self._cluster.nodes()
        runners = await self._lists.read(await self._workers.current(), began)
        ours = self._ours(pods)
        at_work = [name for name in ours if not isinstance(pods, Unknown) and not pods.pods[name].phase.ended]
        effects: list[Effect] = []
        async with self._workers.locked(epoch) as locked:
            now = self._clock.now()
            rows = {worker.name: worker for worker in await locked.rows(at_work)}
            view = View(
                now=now,
                workers=rows,
                pods=pods,
                nodes=nodes,
                limits=self._limits,
                runners=runners,
                ours=ours,
                absent=self._effects.take_absent(),
                in_flight=self._in_flight(),
            )
            decided = []
            for phase in self._phases:
                view, outcome = await phase(view, locked)
                decided.append(outcome)
                effects.extend(outcome.effects)
            self._metrics.workers_lock_seconds.observe((self._clock.now() - now).total_seconds())
        self._note(decided, rows)
        await self._effects.carry_out(effects, epoch)
        await self._sweep_secrets(pods)

    def _ours(self, pods: PodView | Unknown) -> dict[str, Adopted | None]:
        if isinstance(pods, Unknown):
            return {}
        return {
            pod.name: self._cluster.identify(pod) for pod in pods.pods.values() if self._cluster.ours(pod)
        }

    def _note(self, decided: list[Decided], rows: dict[str, Worker]) -> None:
        """Log and count the endings, and have their scopes looked at."""
        scopes = set()
        for change in (change for outcome in decided for change in outcome.changes):
            if isinstance(change, Fail):
                self._metrics.worker_failures_total.labels(change.reason.value).inc()
                log.info("worker.failed", worker=change.name, reason=change.reason.value)
            elif isinstance(change, Finish):
                log.info("worker.completed", worker=change.name)
            else:
                continue
            scopes.add(rows[change.name].scope)
        self._lists.worth_a_look(scopes)

    async def _sweep_secrets(self, pods: PodView | Unknown) -> None:
        """Every few minutes: Secrets of ours that neither a pod nor a live row needs."""
        now = self._clock.now()
        if isinstance(pods, Unknown) or now - self._swept_at < SECRET_SWEEP_AGE:
            return
        self._swept_at = now
        try:
            secrets = await self._cluster.list_secrets()
            live = {worker.name for worker in await self._workers.current()} | self._in_flight()
            for name in find_lost_secrets(secrets, pods, live, now):
                await self._cluster.delete_secret(name)
                log.info("secret.deleted", name=name)
        except ClusterError as error:
            log.warning("secret.sweep_failed", error=str(error))
