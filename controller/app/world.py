"""What the program is handed, and the ways out of it: database, GitHub, cluster."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import structlog

from controller.domain.auth import AuthAttempt
from controller.domain.constants import SHUTDOWN_LIMIT
from controller.errors import StoreUnavailable
from controller.gateways.clock import SystemClock
from controller.gateways.github.client import Observation
from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.github.groups import RunnerGroup
from controller.gateways.kubernetes.connection import connect
from controller.gateways.kubernetes.gateway import KubernetesGateway
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.migrate import check_schema
from controller.ports import Clock, Random
from controller.reconcile.outside import Outside
from controller.settings import File, Settings
from controller.telemetry.metrics import Metrics

log = structlog.get_logger()

DATABASE_RETRY = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class World:
    """What is handed in, so that demo and tests can hand in another one."""

    clock: Clock = field(default_factory=SystemClock)
    rng: Random = field(default_factory=random.SystemRandom)
    kubeconfig: Path | None = None
    shutdown_limit: timedelta = SHUTDOWN_LIMIT  # of real time


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
        file.github.api_url,
        apps,
        clock,
        runner_group=group,
        observe=observe,
        on_auth=on_auth,
        on_list=outside.listed,
    ) as gateway:
        yield gateway


@asynccontextmanager
async def cluster_of(
    file: File, world: World, on_change: Callable[[], None]
) -> AsyncIterator[KubernetesGateway]:
    """The way to the cluster; without a kubeconfig, as the pod that this program runs in."""
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


async def open_database(stack: AsyncExitStack, settings: Settings, connections: int) -> Database:
    """A pool of so many connections, closed with the stack."""
    database = Database(settings.database_url, settings.file.database.schema_, connections)
    await database.open()
    stack.push_async_callback(database.close)
    return database


async def wait_for_schema(database: Database, clock: Clock, stop: asyncio.Event) -> None:
    """Wait for the database to come up; SchemaMismatch if it does not serve this program."""
    while not stop.is_set():
        try:
            await check_schema(database)
            return
        except StoreUnavailable as error:
            log.warning("database.away", error=str(error))
            await clock.sleep(DATABASE_RETRY)
