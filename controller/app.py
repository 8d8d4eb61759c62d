"""The only place that wires everything: settings in, a running program out."""

import asyncio
import os
import random
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from controller.decide.breaker import Breakers
from controller.domain.auth import AuthAttempt
from controller.domain.constants import SHUTDOWN_LIMIT
from controller.domain.explain import explain
from controller.domain.status import NoLoop
from controller.errors import ConfigError, StoreUnavailable
from controller.gateways.clock import SystemClock
from controller.gateways.github.client import Observation
from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.github.groups import RunnerGroup
from controller.gateways.kubernetes.connection import connect
from controller.gateways.kubernetes.gateway import KubernetesGateway
from controller.gateways.postgres.auth_attempts import AuthAttemptStore
from controller.gateways.postgres.boards import BoardStore
from controller.gateways.postgres.breakers import BreakerStore
from controller.gateways.postgres.controls import ControlStore
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.demand import DemandStore
from controller.gateways.postgres.heartbeats import HeartbeatStore
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.jobs import JobStore
from controller.gateways.postgres.leader import Leadership
from controller.gateways.postgres.listener import Listener
from controller.gateways.postgres.migrate import check_schema, migrate, ping
from controller.gateways.postgres.occurrences import OccurrenceStore
from controller.gateways.postgres.pages import PageStore
from controller.gateways.postgres.quiet_pools import QuietPoolStore
from controller.gateways.postgres.retention import RetentionStore
from controller.gateways.postgres.schedule_desk import ScheduleDesk
from controller.gateways.postgres.schedules import ScheduleStore
from controller.gateways.postgres.stuck import StuckStore
from controller.gateways.postgres.unheard import UnheardStore
from controller.gateways.postgres.workers import WorkerStore
from controller.ports import Clock, Random
from controller.reconcile.advertise import Advertise, withdraw_slots
from controller.reconcile.auth_watch import AuthWatch
from controller.reconcile.beside import Beside
from controller.reconcile.boards import BoardWatch
from controller.reconcile.breakers import BreakerWatch
from controller.reconcile.demand_match import DemandMatch
from controller.reconcile.forks import ForkGate
from controller.reconcile.gauges import Gauges
from controller.reconcile.heartbeats import HeartbeatWatch
from controller.reconcile.loop import Loop, Step
from controller.reconcile.occurrences import OccurrenceWork
from controller.reconcile.outside import Outside
from controller.reconcile.plan_text import describe_plan
from controller.reconcile.provision import Provisioner
from controller.reconcile.pull import PullDeliveries
from controller.reconcile.queued_sweep import QueuedSweep, Siblings
from controller.reconcile.retention import Prune
from controller.reconcile.schedules import QuietHoursStep, ScheduleStep
from controller.reconcile.stuck_rows import StuckRows
from controller.reconcile.sync_jobs import SyncJobs
from controller.reconcile.sync_workers import SyncWorkers
from controller.settings import File, Settings
from controller.telemetry.metrics import Metrics
from controller.telemetry.milestones import Milestones
from controller.web.admin import Admin
from controller.web.api import api_routes
from controller.web.explain_text import describe_explanation
from controller.web.queue import NEVER_SEEN
from controller.web.reader import PageDeps
from controller.web.routes import error_handlers, page_routes
from controller.web.schedules import ScheduleViews, schedule_routes
from controller.web.search import JobId, SomeId, read_search
from controller.web.serving import serving
from controller.web.shown import show_explained
from controller.web.status import StatusPages
from controller.web.webhook import Receiver, webhook_routes

log = structlog.get_logger()

PAGE_CONNECTIONS = 3
DATABASE_RETRY = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Parts:
    """Which halves of the program run in this process."""

    controller: bool
    receiver: bool


@dataclass(frozen=True, slots=True)
class World:
    """What is handed in, so that demo and tests can hand in another one."""

    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=random.SystemRandom)
    kubeconfig: Path | None = None
    shutdown_limit: timedelta = SHUTDOWN_LIMIT  # of real time


async def serve(
    settings: Settings,
    parts: Parts,
    world: World | None = None,
    *,
    stop: asyncio.Event | None = None,
    on_serving: Callable[[str], None] = lambda url: None,
) -> int:
    """Run until SIGTERM, SIGINT or `stop`; 0, or 1 if what was under way did not end in time."""
    world = world or World()
    stop = stop or _stop_on_signals()
    metrics = Metrics()
    if parts.controller and settings.file.web.private and settings.admin_token is None:
        raise ConfigError(["$SWITCHBOARD_ADMIN_TOKEN: not set; with `web.private` nobody could sign in"])
    async with AsyncExitStack() as stack:
        database = await _open(stack, settings, settings.file.database.max_connections)
        await _wait_for_schema(database, world.clock, stop)
        intake = Intake(database, settings.file.catalogue, Milestones(metrics).note)
        routes: list[BaseRoute] = []
        handlers: dict[Any, Any] = {}
        loop: Loop | None = None
        if parts.receiver:
            routes += webhook_routes(Receiver(intake, settings, world.clock, metrics))
        if parts.controller:
            opened = open_controller(settings.file, database, intake, world, metrics)
            loop = (await stack.enter_async_context(opened)).loop
            pages = PageStore(await _open(stack, settings, PAGE_CONNECTIONS))
            admin = Admin(settings.admin_token, world.clock)
            deps = PageDeps(pages, world.clock, loop, settings.file, metrics.render, admin)
            desk = ScheduleDesk(database)
            routes += schedule_routes(deps, admin, desk, world.rng)
            waiting = {"occurrences": ScheduleViews(deps, desk).waiting}
            routes += api_routes(deps, admin, ControlStore(database), waiting)
            routes += page_routes(deps)
            handlers.update(error_handlers(deps))
        else:
            routes += StatusPages(NoLoop(world.clock.now()), world.clock, metrics.render).routes()
        web = settings.file.web
        application = Starlette(routes=routes, exception_handlers=handlers)
        url = await stack.enter_async_context(serving(application, web.host, web.port))
        log.info("program.serving", url=url, controller=parts.controller, receiver=parts.receiver)
        on_serving(url)
        if loop is None:
            await stop.wait()
            return 0
        return await _run_loop(loop, stop, world.shutdown_limit)


async def _run_loop(loop: Loop, stop: asyncio.Event, patience: timedelta) -> int:
    """The loop until `stop`, and at most so long after it."""
    task = asyncio.create_task(loop.run(stop), name="loop")
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    log.info("program.stopping", under_way=loop.under_way)
    _, late = await asyncio.wait({task}, timeout=patience.total_seconds())
    if late:
        log.error("shutdown.timed_out", under_way=loop.under_way)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return 1
    task.result()
    log.info("program.stopped")
    return 0


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
        cluster = await stack.enter_async_context(_cluster(file, world, bell.ring))
        clock, rng = world.clock, world.rng
        jobs, workers = JobStore(database), WorkerStore(database)
        beside = Beside(bell.ring)
        provisioner = Provisioner(file, github, cluster, workers, clock, rng, metrics, beside)
        pull = PullDeliveries(file, github, intake, clock, metrics, beside)

        def in_flight() -> frozenset[str]:
            return provisioner.in_flight

        sync_workers = SyncWorkers(
            file, github, cluster, workers, clock, metrics, in_flight, beside, bell.ring, lambda: demand.kept
        )
        breakers = BreakerWatch(BreakerStore(database), clock, file.catalogue)

        def broken() -> Breakers:
            return breakers.breakers

        rows, gauges = DemandStore(database), Gauges(file, metrics)
        forks = ForkGate(github, clock, beside) if file.access.denies_forks else None
        demand = DemandMatch(file, rows, jobs, github, cluster, provisioner, clock, gauges, broken, forks)

        def held() -> frozenset[str]:
            return demand.held

        advertise = Advertise(file, cluster, beside)
        boards = BoardWatch(cluster, BoardStore(database), held, clock, file.kubernetes.board_label)
        heartbeats = HeartbeatWatch(HeartbeatStore(database), cluster, held, clock, file.catalogue)
        prune = Prune(file.retention, RetentionStore(database), clock, beside)
        unheard = UnheardStore(database)
        siblings = Siblings(file, unheard, clock)
        sync_jobs = SyncJobs(file, jobs, github, siblings, clock, metrics, beside)
        sweep = QueuedSweep(siblings, unheard, github, clock, beside)
        holder = f"{socket.gethostname()}:{os.getpid()}"
        occurrences = OccurrenceStore(database, holder)
        work = OccurrenceWork(file, occurrences, github, prune.prune, clock, metrics)
        schedules = ScheduleStep(
            file, ScheduleStore(database), occurrences, work, clock, rng, metrics, beside
        )
        quiet_hours = QuietHoursStep(file, QuietPoolStore(database), clock)
        steps = [
            Step("pull_deliveries", pull.run),
            Step("auth_attempts", auth.run),
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
        ]

        async def next_due(now: datetime) -> datetime | None:
            rows_due = (await jobs.next_due(now), await schedules.next_due())
            due = (*rows_due, quiet_hours.next_due(now), pull.next_due())
            return min((at for at in due if at is not None), default=None)

        leadership = Leadership(database, holder)
        interval = file.timings.poll_interval
        preparations = [
            Step("pull_deliveries", lambda epoch: pull.catch_up()),
            Step("finish_intents", sync_workers.recover),
            Step("reconcile_orphans", sync_workers.recover),
        ]

        def unknown() -> tuple[str, ...]:
            return outside.unknown(cluster, github)

        loop = Loop(steps, leadership, beside, clock, metrics, interval, next_due, preparations, unknown)
        bell.loop = loop
        listener = asyncio.create_task(Listener(database, clock, loop.wake).run(), name="listener")
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


@asynccontextmanager
async def github_of(
    file: File, clock: Clock, metrics: Metrics, outside: Outside, on_auth: Callable[[AuthAttempt], None]
) -> AsyncIterator[GitHubGateway]:
    """The way to GitHub, as the settings' Apps."""

    def observe(seen: Observation) -> None:
        outside.heard(seen.operation, seen.installation_id, seen.code)
        metrics.github_requests_total.labels(seen.operation, seen.code).inc()
        if seen.installation_id is not None and seen.remaining is not None:
            metrics.budgets.see(seen.installation_id, seen.remaining, clock.now())

    group = RunnerGroup(
        file.runner_group, file.github.runner_group_visibility, file.github.allow_public_repositories
    )
    apps = {app.app_id: app.private_key_file for app in file.github.apps.values()}
    async with GitHubGateway(
        file.github.api_url, apps, clock, runner_group=group, observe=observe, on_auth=on_auth
    ) as gateway:
        yield gateway


@asynccontextmanager
async def _cluster(
    file: File, world: World, on_change: Callable[[], None]
) -> AsyncIterator[KubernetesGateway]:
    client = await connect(world.kubeconfig)
    place = file.kubernetes
    async with (
        client,
        KubernetesGateway(
            client,
            place.namespace,
            place.resource,
            place.board_label,
            file.instance,
            world.clock,
            on_change=on_change,
            rng=world.rng,
        ) as gateway,
    ):
        yield gateway


async def _open(stack: AsyncExitStack, settings: Settings, connections: int) -> Database:
    database = Database(settings.database_url, settings.file.database.schema_, connections)
    await database.open()
    stack.push_async_callback(database.close)
    return database


async def _wait_for_schema(database: Database, clock: Clock, stop: asyncio.Event) -> None:
    """Wait for the database to come up; SchemaMismatch if it does not serve this program."""
    while not stop.is_set():
        try:
            await check_schema(database)
            return
        except StoreUnavailable as error:
            log.warning("database.away", error=str(error))
            await clock.sleep(DATABASE_RETRY)


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, stop.set)
    return stop


async def migrate_database(settings: Settings, *, wait: bool) -> int:
    """Apply the migrations; with `wait`, wait for the database first."""
    clock = SystemClock()
    database = Database(settings.database_url, settings.file.database.schema_, 2)
    while wait:
        try:
            await ping(database)
            break
        except StoreUnavailable as error:
            log.info("database.away", error=str(error))
            await clock.sleep(DATABASE_RETRY)
    applied = await migrate(database, clock.now())
    print("\n".join(f"applied {name}" for name in applied) or "nothing to apply")
    return 0


async def withdraw_boards(settings: Settings, world: World | None = None) -> int:
    """Take every slot off the boards that a controller has offered with `boards.advertise`."""
    async with _cluster(settings.file, world or World(), lambda: None) as cluster:
        async with asyncio.timeout(SHUTDOWN_LIMIT.total_seconds()):
            await cluster.synced()
        names = await withdraw_slots(cluster)
    print("\n".join(f"withdrawn from {name}" for name in names) or "no board offers a slot of ours")
    return 0


async def print_plan(settings: Settings, world: World | None = None) -> int:
    """Print what the next iteration would do: read-only, without leadership."""
    world = world or World()
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        database = await _open(stack, settings, 2)
        await check_schema(database)
        outside = Outside(world.clock)
        github = await stack.enter_async_context(
            github_of(settings.file, world.clock, metrics, outside, lambda attempt: None)
        )
        cluster = await stack.enter_async_context(_cluster(settings.file, world, lambda: None))
        async with asyncio.timeout(SHUTDOWN_LIMIT.total_seconds()):
            await cluster.synced()
        jobs, workers = JobStore(database), WorkerStore(database)
        beside = Beside(lambda: None)
        provisioner = Provisioner(
            settings.file, github, cluster, workers, world.clock, world.rng, metrics, beside
        )
        rows, gauges, clock = DemandStore(database), Gauges(settings.file, metrics), world.clock
        file = settings.file
        breakers = await BreakerWatch(BreakerStore(database), clock, file.catalogue).judge()
        forks = ForkGate(github, clock, beside) if file.access.denies_forks else None
        demand = DemandMatch(
            file, rows, jobs, github, cluster, provisioner, clock, gauges, lambda: breakers, forks
        )
        plan = await demand.plan()
        if forks is not None:  # what GitHub was asked about is known now
            await beside.idle()
            plan = await demand.plan()
    print(describe_plan(plan, world.clock.now()))
    return 0


async def print_explanation(settings: Settings, job: str, say: Callable[[str], None] = print) -> int:
    """Print why a job is not running, from the same stored rows as pages and API; 1 if it is not known."""
    sought = read_search(job, settings.file.names.stem)
    if not isinstance(sought, JobId | SomeId):
        say("That is neither the id of a job nor the address of one on GitHub.")
        return 1
    async with AsyncExitStack() as stack:
        database = await _open(stack, settings, 1)
        await check_schema(database)
        story = await PageStore(database).job(sought.number)
    if story is None:
        say(NEVER_SEEN)
        return 1
    say(describe_explanation(show_explained(explain(sought.number, story, full=True))))
    return 0
