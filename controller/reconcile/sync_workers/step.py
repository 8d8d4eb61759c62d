"""The step itself: observe without the lock, decide and write under it, act after it."""

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime

import structlog

from controller.decide.leftovers import find_lost_secrets
from controller.decide.pace import is_time
from controller.domain.changes import Decided, Effect, Fail, Finish, PodGone
from controller.domain.constants import SECRET_SWEEP_EVERY
from controller.domain.sightings import PodView, Unknown
from controller.domain.views import Spares, View
from controller.domain.workers import Adopted
from controller.ports import Clock, Cluster, GitHub, LockedWorkers, Workers
from controller.reconcile.beside import Beside
from controller.reconcile.moved import Moved
from controller.reconcile.stages import Stages
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
from controller.telemetry.milestones import Milestones

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
        beside: Beside,
        wake: Callable[[], None],
        spares: Callable[[], Spares],
        moved: Moved,
    ) -> None:
        self._limits = file.health_limits
        self._cluster = cluster
        self._workers = workers
        self._clock = clock
        self._metrics = metrics
        self._in_flight = in_flight
        self._stages = Stages(Milestones(metrics))
        self._cleanup = GitHubCleanup(file.names)
        suspects = self._cleanup.suspects
        self._lists = RunnerLists(github, workers, self._limits, suspects, clock, beside, moved)
        self._effects = Effects(github, cluster, workers, clock, metrics, beside)
        self._beside = beside
        self._wake = wake
        self._spares = spares
        self._swept_at: datetime | None = None
        self._phases: tuple[Phase, ...] = (
            orphan_sweep,
            pod_phase_sync,
            unreachable_node_check,
            health_checks,
            self._cleanup.run,
            delete_terminal_pods,
        )

    async def run(self, epoch: int) -> None:
        """Bring rows, pods and runners into agreement once; the effects go on beside the loop."""
        await self._agree(epoch)

    async def recover(self, epoch: int) -> None:
        """The same on fresh views and to the end of its effects: for a leader that has just begun."""
        await self._cluster.synced()
        await self._beside.finished(await self._agree(epoch))

    async def _agree(self, epoch: int) -> list[str]:
        pods, nodes = self._cluster.pods(), self._cluster.nodes()
        ours = self._ours(pods)
        at_work = self._at_work(pods, ours)
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
                runners=self._lists.take(),
                ours=ours,
                absent=self._effects.take_absent(),
                in_flight=self._in_flight(),
                kept=self._spares().kept,
                ending=self._spares().ending,
            )
            decided = []
            for phase in self._phases:
                view, outcome = await phase(view, locked)
                decided.append(outcome)
                effects.extend(outcome.effects)
            self._metrics.workers_lock_seconds.observe((self._clock.now() - now).total_seconds())
        self._note(decided)
        self._stages.note(rows)
        begun = self._effects.begin(effects, epoch)
        await self._lists.refresh(rows.values(), epoch)
        self._sweep_secrets()
        return begun

    def _ours(self, pods: PodView | Unknown) -> dict[str, Adopted | None]:
        if isinstance(pods, Unknown):
            return {}
        return {
            pod.name: self._cluster.identify(pod) for pod in pods.pods.values() if self._cluster.ours(pod)
        }

    def _at_work(self, pods: PodView | Unknown, ours: Collection[str]) -> list[str]:
        """The pods whose rows are looked at, ended or not: those that have not ended, or not told yet why."""
        if isinstance(pods, Unknown):
            return []
        unreported = self._effects.unreported(pods.pods)
        return [name for name in ours if not pods.pods[name].phase.ended or name in unreported]

    def _note(self, decided: list[Decided]) -> None:
        """Log and count the endings, and ask about odd ones soon."""
        for change in (change for outcome in decided for change in outcome.changes):
            match change:
                case Fail(name, reason):
                    self._metrics.worker_failures_total.labels(reason.value).inc()
                    log.info("worker.failed", worker=name, reason=reason.value)
                case Finish(name):
                    log.info("worker.completed", worker=name)
                case PodGone(look=True):
                    self._wake()

    def _sweep_secrets(self) -> None:
        """At the start of a term and every minute: Secrets of ours that neither a pod nor a live row needs."""
        now = self._clock.now()
        due = is_time(self._swept_at, SECRET_SWEEP_EVERY, now)
        if due and self._beside.start("sweep secrets", self._sweep):
            self._swept_at = now

    async def _sweep(self) -> bool:
        secrets = await self._cluster.list_secrets()
        rows = await self._workers.statuses(secrets)
        pods = self._cluster.pods()  # seen after the Secrets: a pod that is missing now was never made
        if isinstance(pods, Unknown):
            return False
        for name in find_lost_secrets(secrets, pods, rows, self._in_flight(), self._clock.now()):
            await self._cluster.delete_secret(name)
            log.info("secret.deleted", name=name)
        return False
