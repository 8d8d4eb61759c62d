"""The program that runs until it is told to stop: reconciler, receiver, pages."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from starlette.routing import BaseRoute

from controller.app.reconciler import open_controller
from controller.app.world import World, open_database, wait_for_schema
from controller.domain.status import NoLoop
from controller.errors import ConfigError
from controller.gateways.postgres.controls import ControlStore
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.pages import PageStore
from controller.gateways.postgres.schedule_desk import ScheduleDesk
from controller.gateways.postgres.schedule_reads import ScheduleReads
from controller.ports import Random
from controller.reconcile.loop import Loop
from controller.settings import Settings
from controller.telemetry.metrics import Metrics
from controller.telemetry.milestones import Milestones
from controller.web.admin import Admin
from controller.web.api import api_routes
from controller.web.reader import PageDeps
from controller.web.routes import error_handlers, page_routes, site
from controller.web.schedules import ScheduleViews, schedule_routes
from controller.web.serving import serving
from controller.web.status import StatusPages
from controller.web.webhook import Receiver, webhook_routes

log = structlog.get_logger()

PAGE_CONNECTIONS = 3


@dataclass(frozen=True, slots=True)
class Parts:
    """Which halves of the program run in this process."""

    controller: bool
    receiver: bool


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
        database = await open_database(stack, settings, settings.file.database.max_connections)
        await wait_for_schema(database, world.clock, stop)
        intake = Intake(database, settings.file.catalogue, Milestones(metrics).note)
        routes: list[BaseRoute] = []
        handlers: dict[Any, Any] = {}
        loop: Loop | None = None
        if parts.receiver:
            routes += webhook_routes(Receiver(intake, settings, world.clock, metrics))
        if parts.controller:
            opened = open_controller(settings.file, database, intake, world, metrics)
            loop = (await stack.enter_async_context(opened)).loop
            pages = await open_database(stack, settings, PAGE_CONNECTIONS)
            admin = Admin(settings.admin_token, world.clock)
            deps = PageDeps(PageStore(pages), world.clock, loop, settings.file, metrics.render, admin)
            routes += controller_routes(deps, admin, database, pages, world.rng)
            handlers.update(error_handlers(deps))
        else:
            routes += StatusPages(NoLoop(world.clock.now()), world.clock, metrics.render).routes()
        web = settings.file.web
        application = site(routes, handlers)
        url = await stack.enter_async_context(serving(application, web.host, web.port))
        log.info("program.serving", url=url, controller=parts.controller, receiver=parts.receiver)
        on_serving(url)
        if loop is None:
            await stop.wait()
            return 0
        return await _run_loop(loop, stop, world.shutdown_limit)


def controller_routes(
    deps: PageDeps, admin: Admin, database: Database, pages: Database, rng: Random
) -> list[BaseRoute]:
    """All that a controller serves: pages, their twins, the API and signing in. What reads, reads from `pages`."""
    reads = ScheduleReads(pages)
    waiting = {"occurrences": ScheduleViews(deps, reads).waiting}
    return [
        *schedule_routes(deps, admin, reads, ScheduleDesk(database), rng),
        *api_routes(deps, admin, ControlStore(database), waiting),
        *page_routes(deps),
    ]


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


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, stop.set)
    return stop
