"""What the child processes play on: real PostgreSQL, a served GitHub and a served cluster, all on the machine's clock.

Webhooks are received in the test's own process, so that a dead controller loses none of them.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from controller.gateways.clock import SystemClock
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.simulators.cluster import Behaviour, ClusterSimulator
from controller.simulators.cluster.objects import SECRETS
from controller.simulators.github import JobSpec
from controller.telemetry.metrics import Metrics
from controller.web.webhook import Receiver, webhook_routes
from tests.children import Child, a_child
from tests.grounds import POOL, a_ground
from tests.leftovers import loose_ends
from tests.postgres import opened
from tests.serving import serving
from tests.systems import a_pool, settings_for
from tests.waiting import until
from tests.worlds import GitHubWorld

PATIENCE = 200.0  # a busy machine may miss a delivery, and missed ones are pulled once a minute
REPO = "acme/widgets"
TIMINGS = {"pollInterval": "1s", "podPendingTimeout": "2s", "podDeleteGrace": "2s"}
SLOW = Behaviour(pull_time=timedelta(minutes=10), stop_time=timedelta(milliseconds=20))


@dataclass(slots=True)
class Stage:
    """Everything but the controller."""

    github: GitHubWorld
    cluster: ClusterSimulator
    database: Database
    environment: dict[str, str]

    def child(self, command: str = "controller", **environment: str) -> AbstractAsyncContextManager[Child]:
        """A controller on this stage."""
        return a_child(command, environment=self.environment | environment)

    def queue(self, *, jobs: int = 1, seconds: float = 0.1) -> list[int]:
        """A push: a run of that many equal jobs; their ids."""
        run = self.github.sim.queue_run(REPO, [JobSpec((POOL,), seconds) for _ in range(jobs)])
        return [job.id for job in run.jobs]

    def treat(self, behaviour: Behaviour) -> None:
        """How the boards treat what they start from now on."""
        for node in self.cluster.nodes():
            self.cluster.set_board_behaviour(node["metadata"]["name"], behaviour)

    async def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:
        """Ask the database itself."""
        async with self.database.transaction() as connection:
            return await (await connection.execute(query, values)).fetchall()

    async def workers(self) -> dict[str, dict[str, Any]]:
        """All rows of workers, by name."""
        return {row["name"]: row for row in await self.rows("SELECT * FROM workers ORDER BY created_at")}

    def secrets(self) -> dict[str, dict[str, Any]]:
        """The Secrets there are, by name."""
        return {each["metadata"]["name"]: each for each in self.cluster.store.all(SECRETS)}

    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods there are, by name."""
        return {each["metadata"]["name"]: each for each in self.cluster.pods()}

    def registered(self) -> list[str]:
        """The runners that GitHub has."""
        return [each.name for each in self.github.sim.ledger.runners() if each.removed_at is None]

    async def loose_ends(self) -> list[str]:
        """What is lost, or left over."""
        return await loose_ends(self.github, self.cluster, self.database)

    async def comes_to_rest(self) -> None:
        """Wait until every job has finished and nothing is left of their runners, pods and Secrets."""

        async def at_rest() -> bool:
            return not await self.loose_ends()

        try:
            await until(at_rest, PATIENCE)
        except TimeoutError:
            raise AssertionError(await self.loose_ends()) from None


@asynccontextmanager
async def a_stage(
    database_url: str,
    directory: Path,
    *,
    boards: int = 2,
    timings: Mapping[str, str] = TIMINGS,
    **more: Any,
) -> AsyncIterator[Stage]:
    """Set the stage; `more` goes into the settings of the children."""
    async with (
        a_ground(database_url, directory, boards=boards, timings=dict(timings), **more) as ground,
        opened(database_url) as database,
    ):
        receiving = settings_for(ground.github, database_url, [a_pool(POOL)], {})
        intake = Intake(database, receiving.file.catalogue)
        receiver = Receiver(intake, receiving, SystemClock(), Metrics())
        async with serving(Starlette(routes=webhook_routes(receiver))) as hook:
            ground.github.sim.webhook_url = f"{hook}/webhook"
            yield Stage(ground.github, ground.cluster, database, ground.environment)


async def finished(stage: Stage, job_id: int) -> None:
    """Wait until GitHub has finished the job and our row says so."""

    async def both() -> bool:
        rows = await stage.rows("SELECT status FROM jobs WHERE job_id = %(id)s", id=job_id)
        there = stage.github.sim.ledger.job(job_id).status
        return [there, *(row["status"] for row in rows)] == ["completed", "completed"]

    await until(both, PATIENCE)


def ending(pod: dict[str, Any] | None) -> bool:
    """Whether a pod has ended, is gone, or will be in a moment."""
    if pod is None or pod["status"]["phase"] in ("Succeeded", "Failed"):
        return True
    return pod["spec"].get("activeDeadlineSeconds") == 1 or "deletionTimestamp" in pod["metadata"]
