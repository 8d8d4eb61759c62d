"""The whole system for tests: the real controller and receiver on real PostgreSQL, the simulators over HTTP.

Time stands still but for `System.step`; the loop runs only there, so that a test sees every state in between.
"""

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from controller.app import Controller, World, open_controller
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.ports import Secret
from controller.settings import File, Settings, parse_file
from controller.simulators.cluster import ClusterSimulator, RunnerProgram
from controller.simulators.github import JobSpec
from controller.telemetry.metrics import Metrics
from controller.telemetry.milestones import Milestones
from controller.web.webhook import Receiver, webhook_routes
from tests.clocks import ManualClock
from tests.postgres import opened
from tests.serving import serving
from tests.worlds import ORGANIZATION_APP, USER_APP, GitHubWorld, a_github

BOARD_LABEL = "riseproject.dev/board"
IMAGE = "registry.example/runner:1"
PATIENCE = 400  # steps
WOKEN = 5


@dataclass(slots=True)
class System:
    """Everything that is running, and the way to let time pass."""

    clock: ManualClock
    github: GitHubWorld
    cluster: ClusterSimulator
    database: Database
    controller: Controller
    settings: Settings
    metrics: Metrics

    @property
    def file(self) -> File:
        """The settings file."""
        return self.settings.file

    async def settle(self) -> None:
        """Let everything outside happen that needs no time: webhooks, watches, kubelets."""
        await self.clock.settle()
        await self.github.sim.settle()
        await self.clock.settle()

    async def turn(self) -> None:
        """One iteration and what it began, to the end; and those that this woke."""
        for _ in range(WOKEN):
            await self.settle()
            await self.controller.loop.turn()
            await self.controller.beside.idle()
            await self.settle()
            if not self.controller.loop.rung:
                return

    async def step(self, seconds: float = 5.0) -> None:
        """Let time pass, then one iteration."""
        await self.clock.advance(timedelta(seconds=seconds))
        await self.turn()

    async def until(self, done: Callable[[], bool], seconds: float = 5.0) -> None:
        """Step until it is so; a test that waits for ever fails here."""
        for _ in range(PATIENCE):
            if done():
                return
            await self.step(seconds)
        raise AssertionError("it did not come to pass")

    def queue(self, repo: str, *labels: str, jobs: int = 1, seconds: float = 30.0) -> list[int]:
        """A push: a run of that many equal jobs; their ids."""
        run = self.github.sim.queue_run(repo, [JobSpec(labels, seconds) for _ in range(jobs)])
        return [job.id for job in run.jobs]

    def finished(self, ids: Sequence[int]) -> Callable[[], bool]:
        """Whether GitHub has finished all of these."""
        return lambda: all(self.github.sim.ledger.job(job_id).status == "completed" for job_id in ids)

    async def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """Ask the database itself."""
        async with self.database.transaction() as connection:
            return await (await connection.execute(query, values)).fetchall()

    async def statuses(self, table: str = "jobs") -> dict[str, int]:
        """How many rows there are of each status."""
        found = await self.rows(f"SELECT status, count(*) AS rows FROM {table} GROUP BY status")
        return {row["status"]: row["rows"] for row in found}


def a_pool(name: str, *label_sets: Sequence[str], board: str | None = None, **more: Any) -> dict[str, Any]:
    """A pool of the settings file; without labels it serves its own name."""
    sets = [list(labels) for labels in label_sets] or [[name]]
    return {"name": name, "board": board or name, "labels": sets, "image": IMAGE, **more}


def settings_for(
    github: GitHubWorld, url: str, pools: Sequence[Mapping[str, Any]], more: Mapping[str, Any]
) -> Settings:
    """The settings of a test's system."""
    mistakes: list[str] = []
    kinds = {"Organization": ORGANIZATION_APP, "User": USER_APP}
    apps = {kind: {"appId": app, "privateKeyFile": str(github.apps[app])} for kind, app in kinds.items()}
    file = parse_file(
        {"github": {"apiUrl": github.base_url, "apps": apps}, "pools": list(pools), **more}, mistakes
    )
    assert file is not None, mistakes
    secrets = (Secret("an older secret"), Secret(github.webhook_secret))
    return Settings(file=file, database_url=Secret(url), webhook_secrets=secrets)


@asynccontextmanager
async def a_system(
    database_url: str,
    directory: Path,
    *,
    pools: Sequence[Mapping[str, Any]],
    boards: Mapping[str, int],
    **more: Any,
) -> AsyncIterator[System]:
    """Start it all; `boards` says how many boards of each type there are."""
    clock, metrics = ManualClock(), Metrics()
    async with AsyncExitStack() as stack:
        github = await stack.enter_async_context(a_github(clock))
        more["boards"] = {"advertise": more.pop("advertise", False)}  # `boards` says something else here
        settings = settings_for(github, database_url, pools, more)
        cluster = ClusterSimulator(clock, random.Random(3), token="cluster-token")
        cluster.default_program = RunnerProgram(github.base_url, "2.335.0")
        for board, count in boards.items():
            for number in range(1, count + 1):
                cluster.add_board(f"{board}-{number}", {BOARD_LABEL: board})
        cluster_url = await stack.enter_async_context(serving(cluster.app))
        await stack.enter_async_context(cluster.running())
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig(cluster_url), encoding="utf-8")
        database = await stack.enter_async_context(opened(database_url))
        intake = Intake(database, settings.file.catalogue, Milestones(metrics).note)
        receiver = Receiver(intake, settings, clock, metrics)
        hook = await stack.enter_async_context(serving(Starlette(routes=webhook_routes(receiver))))
        github.sim.webhook_url = f"{hook}/webhook"
        world = World(clock, random.Random(5), kubeconfig)
        controller = await stack.enter_async_context(
            open_controller(settings.file, database, intake, world, metrics)
        )
        stack.push_async_callback(controller.beside.stop)
        await controller.cluster.synced()
        yield System(clock, github, cluster, database, controller, settings, metrics)
