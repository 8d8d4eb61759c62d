"""The commands that do one thing and end."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import structlog

from controller.app.world import DATABASE_RETRY, World, cluster_of, github_of, open_database
from controller.domain.constants import SHUTDOWN_LIMIT
from controller.domain.durations import show_duration
from controller.domain.explain import explain
from controller.domain.sightings import Unknown
from controller.errors import ClusterUnavailable, StoreUnavailable
from controller.gateways.clock import SystemClock
from controller.gateways.postgres.breakers import BreakerStore
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.demand import DemandStore
from controller.gateways.postgres.jobs import JobStore
from controller.gateways.postgres.migrate import check_schema, migrate, ping
from controller.gateways.postgres.pages import PageStore
from controller.gateways.postgres.workers import WorkerStore
from controller.reconcile.advertise import withdraw_slots
from controller.reconcile.beside import Beside
from controller.reconcile.breakers import BreakerWatch
from controller.reconcile.demand_match import DemandMatch
from controller.reconcile.forks import ForkGate
from controller.reconcile.gauges import Gauges
from controller.reconcile.outside import Outside
from controller.reconcile.provision import Provisioner
from controller.settings import Settings
from controller.telemetry.metrics import Metrics
from controller.web.explain_text import describe_explanation
from controller.web.pages import NEVER_SEEN
from controller.web.plan_text import describe_plan
from controller.web.search import JobId, SomeId, read_search
from controller.web.shown import show_explained

log = structlog.get_logger()


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
    async with cluster_of(settings.file, world or World(), lambda: None) as cluster:
        await _seen(cluster.nodes_synced(), cluster.nodes)
        names = await withdraw_slots(cluster, settings.file.instance)
    print("\n".join(f"withdrawn from {name}" for name in names) or "no board offers a slot of ours")
    return 0


async def _seen(listing: Awaitable[None], *views: Callable[[], object]) -> None:
    """Wait until the cluster has been seen; ClusterUnavailable says what of it is unknown, and why."""
    try:
        async with asyncio.timeout(SHUTDOWN_LIMIT.total_seconds()):
            await listing
    except TimeoutError as error:
        unknown = [seen.why for view in views if isinstance(seen := view(), Unknown)]
        waited = show_duration(SHUTDOWN_LIMIT)
        raise ClusterUnavailable(
            f"nothing is done, the cluster is unknown after {waited}: {'; '.join(unknown)}"
        ) from error


async def print_plan(settings: Settings, world: World | None = None) -> int:
    """Print what the next iteration would do: read-only, without leadership."""
    world = world or World()
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        database = await open_database(stack, settings, 2)
        await check_schema(database)
        outside = Outside(world.clock)
        github = await stack.enter_async_context(
            github_of(settings.file, world.clock, metrics, outside, lambda attempt: None)
        )
        cluster = await stack.enter_async_context(cluster_of(settings.file, world, lambda: None))
        await _seen(cluster.synced(), cluster.nodes, cluster.pods)
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
        database = await open_database(stack, settings, 1)
        await check_schema(database)
        story = await PageStore(database).job(sought.number)
    now = SystemClock().now()
    if story is None:
        say(NEVER_SEEN)
        return 1
    say(describe_explanation(show_explained(explain(sought.number, story, now, full=True))))
    return 0
