"""The reconciler, wired. What a leader remembers is made anew with every term."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from controller.app.world import World, cluster_of, github_of
from controller.decide.breaker import Breakers
from controller.decide.capacity import SlotMap
from controller.domain.sightings import Unknown
from controller.domain.views import Spares
from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.kubernetes.gateway import KubernetesGateway
from controller.gateways.postgres.auth_attempts import AuthAttemptStore
from controller.gateways.postgres.boards import BoardStore
from controller.gateways.postgres.breakers import BreakerStore
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.demand import DemandStore
from controller.gateways.postgres.heartbeats import HeartbeatStore
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.jobs import JobStore
from controller.gateways.postgres.leader import Leadership
from controller.gateways.postgres.listener import Listener
from controller.gateways.postgres.moves import MoveStore
from controller.gateways.postgres.occurrences import OccurrenceStore
from controller.gateways.postgres.quiet_pools import QuietPoolStore
from controller.gateways.postgres.retention import RetentionStore
from controller.gateways.postgres.schedules import ScheduleStore
from controller.gateways.postgres.stuck import StuckStore
from controller.gateways.postgres.unheard import UnheardStore
from controller.gateways.postgres.workers import WorkerStore
from controller.reconcile.advertise import Advertise
from controller.reconcile.auth_watch import AuthWatch
from controller.reconcile.beside import Beside
from controller.reconcile.boards import BoardWatch
from controller.reconcile.breakers import BreakerWatch
from controller.reconcile.demand_match import DemandMatch
from controller.reconcile.forks import ForkGate
from controller.reconcile.gauges import Gauges
from controller.reconcile.heartbeats import HeartbeatWatch
from controller.reconcile.loop import Loop, Step, Term
from controller.reconcile.moved import Moved
from controller.reconcile.occurrences import OccurrenceWork
from controller.reconcile.outside import Outside
from controller.reconcile.provision import Provisioner
from controller.reconcile.pull import PullDeliveries
from controller.reconcile.queued_sweep import QueuedSweep, Siblings
from controller.reconcile.retention import Prune
from controller.reconcile.schedules import QuietHoursStep, ScheduleStep
from controller.reconcile.stuck_rows import StuckRows
from controller.reconcile.sync_jobs import SyncJobs
from controller.reconcile.sync_workers import SyncWorkers
from controller.settings import File
from controller.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Controller:
    """The reconciler, wired."""

    loop: Loop
    beside: Beside
    cluster: KubernetesGateway


@asynccontextmanager
async def open_controller(
    file: File, database: Database, intake: Intake, world: World, metrics: Metrics
) -> AsyncIterator[Controller]:
    """The reconciler with its gateways and its doorbell; its loop still has to be run."""
    bell = _Bell()
    async with AsyncExitStack() as stack:
        auth = AuthWatch(AuthAttemptStore(database), world.clock)
        outside = Outside(world.clock)
        github = await stack.enter_async_context(github_of(file, world.clock, metrics, outside, auth.note))
        cluster = await stack.enter_async_context(cluster_of(file, world, bell.ring))
        beside = Beside(bell.ring)
        holder = f"{socket.gethostname()}:{os.getpid()}"
        lasting = _Lasting(
            file, database, intake, world, metrics, github, cluster, beside, auth, holder, bell.ring
        )

        def unknown() -> tuple[str, ...]:
            return outside.unknown(cluster, github)

        leadership, interval = Leadership(database, holder), file.timings.poll_interval
        loop = Loop(
            partial(_begin_term, lasting), leadership, beside, world.clock, metrics, interval, unknown
        )
        bell.loop = loop
        listener = asyncio.create_task(Listener(database, world.clock, loop.wake).run(), name="listener")
        try:
            yield Controller(loop, beside, cluster)
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)


class _Bell:
    """Rings the loop from things that must exist before it does."""

    def __init__(self) -> None:
        self.loop: Loop | None = None

    def ring(self) -> None:
        """Wake the loop, once there is one."""
        if self.loop is not None:
            self.loop.wake()


@dataclass(frozen=True, slots=True)
class _Lasting:
    """What outlives a term: the ways outside, and what hears of them."""

    file: File
    database: Database
    intake: Intake
    world: World
    metrics: Metrics
    github: GitHubGateway
    cluster: KubernetesGateway
    beside: Beside
    auth: AuthWatch
    holder: str
    ring: Callable[[], None]


def _begin_term(lasting: _Lasting) -> Term:
    """Everything that a leader does, in its order, with nothing remembered."""
    file, database, beside = lasting.file, lasting.database, lasting.beside
    github, cluster, metrics = lasting.github, lasting.cluster, lasting.metrics
    clock, rng = lasting.world.clock, lasting.world.rng
    jobs, workers = JobStore(database), WorkerStore(database)
    provisioner = Provisioner(file, github, cluster, workers, clock, rng, metrics, beside)
    pull = PullDeliveries(file, github, lasting.intake, clock, metrics, beside)

    def in_flight() -> frozenset[str]:
        return provisioner.in_flight

    def spares() -> Spares:
        return demand.spares

    moved, ring = Moved(github, MoveStore(database), clock), lasting.ring
    sync_workers = SyncWorkers(
        file, github, cluster, workers, clock, metrics, in_flight, beside, ring, spares, moved
    )
    breakers = BreakerWatch(BreakerStore(database), clock, file.catalogue)

    def broken() -> Breakers:
        return breakers.breakers

    rows, gauges = DemandStore(database), Gauges(file, metrics)
    forks = ForkGate(github, clock, beside) if file.access.denies_forks else None
    demand = DemandMatch(file, rows, jobs, github, cluster, provisioner, clock, gauges, broken, forks)

    def matched() -> SlotMap | Unknown:
        return demand.slots

    advertise = Advertise(file, cluster, beside)
    boards = BoardWatch(BoardStore(database), matched, clock, file.kubernetes.board_label)
    heartbeats = HeartbeatWatch(HeartbeatStore(database), cluster, matched, clock, file.catalogue)
    prune = Prune(file.retention, RetentionStore(database), clock, beside)
    unheard = UnheardStore(database)
    siblings = Siblings(file, unheard, clock)
    sync_jobs = SyncJobs(file, jobs, github, siblings, clock, metrics, beside)
    sweep = QueuedSweep(siblings, unheard, github, clock, beside)
    occurrences = OccurrenceStore(database, lasting.holder)
    work = OccurrenceWork(file, occurrences, github, prune.prune, clock, metrics)
    schedules = ScheduleStep(file, ScheduleStore(database), occurrences, work, clock, rng, metrics, beside)
    quiet_hours = QuietHoursStep(file, QuietPoolStore(database), clock)
    steps = (
        Step("pull_deliveries", pull.run),
        Step("auth_attempts", lasting.auth.run),
        Step("stuck_rows", StuckRows(StuckStore(database), clock).run),
        Step("sync_jobs", sync_jobs.run),
        Step("queued_sweep", sweep.run),
        Step("sync_workers", sync_workers.run),
        Step("breakers", breakers.run),
        Step("quiet_hours", quiet_hours.run),
        Step("schedules", schedules.run),
        Step("demand_match", demand.run),
        Step("boards", boards.run),
        Step("advertise", advertise.run),
        Step("heartbeats", heartbeats.run),
        Step("prune", prune.run),
    )

    async def next_due(now: datetime) -> datetime | None:
        rows_due = (await jobs.next_due(now), await schedules.next_due())
        due = (*rows_due, quiet_hours.next_due(now), pull.next_due())
        return min((at for at in due if at is not None), default=None)

    preparations = (
        Step("pull_deliveries", lambda epoch: pull.catch_up()),
        Step("finish_intents", sync_workers.recover),
        Step("reconcile_orphans", sync_workers.recover),
    )
    return Term(preparations, steps, next_due)
