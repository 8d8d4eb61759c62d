"""The whole system on real parts: cluster, PostgreSQL, controller and receiver; only GitHub is simulated.

Every system has a namespace and a database of its own; the boards are shared, so it leaves them empty.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from controller.gateways.clock import SystemClock
from controller.gateways.postgres.database import Database
from controller.simulators.github import JobSpec
from hack.cluster.client import Cluster
from tests.contract.cluster.servers import client_of
from tests.e2e.access import grant, revoke, with_token
from tests.e2e.images import RUNNER
from tests.e2e.programs import running
from tests.postgres import opened
from tests.serving import LOOPBACK
from tests.worlds import ORGANIZATION_APP, USER_APP, GitHubWorld, a_github

Json = dict[str, Any]
PATIENCE = 400.0  # seconds: real kubelets on a busy machine
LOOK = 0.2
WEBHOOK_SECRET = "one-secret-without-spaces"
GITHUB_HOST = (
    "SWITCHBOARD_E2E_GITHUB_HOST"  # an address of this machine that the boards reach; loopback on our own
)
MERGE_PATCH = {"content-type": "application/merge-patch+json"}
HOPELESS = "3600s"  # longer than any test waits
HASTY = {"registrationTimeout": "20s", "idleTimeout": "20s", "podPendingTimeout": "45s"}
# How long a busy machine takes to start things is not what is tested; where it is, the test is hasty.
TIMINGS = {"pollInterval": "5s", **dict.fromkeys(HASTY, HOPELESS)}


@dataclass(frozen=True, slots=True)
class System:
    """Everything that is running, and the ways to look at it."""

    cluster: Cluster
    github: GitHubWorld
    database: Database
    client: httpx.AsyncClient  # the cluster's admin
    namespace: str
    controller_url: str
    folder: Path

    def path(self, *parts: str) -> str:
        """An address in the namespace."""
        return "/".join(("/api/v1/namespaces", self.namespace, *parts))

    async def items(self, plural: str) -> list[Json]:
        """All objects of a kind in the namespace."""
        answer = await self.client.get(self.path(plural))
        found: list[Json] = answer.raise_for_status().json()["items"]
        return found

    async def pods(self) -> dict[str, Json]:
        """The pods by name."""
        return {pod["metadata"]["name"]: pod for pod in await self.items("pods")}

    async def runner_secrets(self) -> list[str]:
        """The names of the Secrets that carry JIT configs."""
        return [secret["metadata"]["name"] for secret in await self.items("secrets")]

    async def rows(self, query: str, **values: Any) -> list[Json]:
        """Ask the database itself."""
        async with self.database.transaction() as connection:
            return await (await connection.execute(query.encode(), values)).fetchall()

    async def worker(self, name: str) -> Json:
        """The row of a worker."""
        (row,) = await self.rows("SELECT * FROM workers WHERE name = %(name)s", name=name)
        return row

    async def statuses(self, table: str = "jobs") -> dict[str, int]:
        """How many rows there are of each status."""
        found = await self.rows(f"SELECT status, count(*) AS rows FROM {table} GROUP BY status")
        return {row["status"]: row["rows"] for row in found}

    def queue(
        self, *labels: str, jobs: int = 1, seconds: float = 1.0, repo: str = "acme/widgets"
    ) -> list[int]:
        """A push: a run of that many equal jobs; their ids."""
        run = self.github.sim.queue_run(repo, [JobSpec(labels, seconds) for _ in range(jobs)])
        return [job.id for job in run.jobs]

    async def finished(self, ids: Sequence[int]) -> None:
        """Wait until GitHub and we agree that these jobs are completed."""
        await self.until(self._all_completed(ids))

    def _all_completed(self, ids: Sequence[int]) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            query = "SELECT count(*) AS rows FROM jobs WHERE job_id = ANY(%(ids)s) AND status = 'completed'"
            if (await self.rows(query, ids=list(ids)))[0]["rows"] < len(ids):
                return False
            ledger = self.github.sim.ledger
            return all(ledger.job(job_id).status == "completed" for job_id in ids)

        return holds

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for something; says what there is if it does not come to pass."""
        try:
            await _wait(holds)
        except TimeoutError:
            jobs = await self.rows("SELECT job_id, status, skip_reason, runner_name FROM jobs")
            workers = await self.rows("SELECT name, status, ending_reason, node, failure_info FROM workers")
            pods = {name: pod["status"] for name, pod in (await self.pods()).items()}
            raise AssertionError(f"it did not come to pass\n{jobs}\n{workers}\n{pods}") from None

    async def iterations(self, count: int) -> None:
        """Wait until the controller has come round so many times more."""

        async def so_far() -> int:
            answer = await self.client.get(f"{self.controller_url}/ready")
            return int(answer.raise_for_status().json()["iterations"])

        wanted = await so_far() + count

        async def reached() -> bool:
            return await so_far() >= wanted

        await self.until(reached)

    async def patch_node(self, name: str, patch: Json) -> None:
        """Change a node as its admin."""
        answer = await self.client.patch(f"/api/v1/nodes/{name}", json=patch, headers=MERGE_PATCH)
        answer.raise_for_status()


def a_pool(name: str, *, board: str = "rv1", image: str = RUNNER, **more: Any) -> Json:
    """A pool whose label is its name; its image is on the boards already."""
    return {
        "name": name,
        "board": board,
        "labels": [name],
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        **more,
    }


@asynccontextmanager
async def a_system(
    cluster: Cluster,
    database_url: str,
    folder: Path,
    *,
    pools: Sequence[Json],
    timings: Mapping[str, str] | None = None,
    **more: Any,
) -> AsyncIterator[System]:
    """Start it all, and leave the boards empty."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(client_of(cluster.kubeconfig))
        namespace = await stack.enter_async_context(_a_namespace(client))
        token, wide = await grant(client, namespace)
        stack.push_async_callback(revoke, client, wide)
        kubeconfig = with_token(cluster.kubeconfig, token, folder / "kubeconfig")
        world = a_github(SystemClock(), WEBHOOK_SECRET, os.environ.get(GITHUB_HOST, LOOPBACK))
        github = await stack.enter_async_context(world)
        settings = {
            "github": {"apiUrl": github.base_url, "apps": _apps(github)},
            "kubernetes": {"namespace": namespace},
            "pools": list(pools),
            "timings": {**TIMINGS, **(timings or {})},
            **more,
        }
        environment = {
            "DATABASE_URL": database_url,
            "GITHUB_WEBHOOK_SECRET": github.webhook_secret,
            "KUBECONFIG": str(kubeconfig),
        }
        database = await stack.enter_async_context(opened(database_url))
        receiver = await stack.enter_async_context(running("webhook", settings, environment, folder))
        controller = await stack.enter_async_context(running("controller", settings, environment, folder))
        await receiver.ready()
        github.sim.webhook_url = f"{receiver.url}/webhook"
        await controller.ready()
        yield System(cluster, github, database, client, namespace, controller.url, folder)


def _apps(github: GitHubWorld) -> Json:
    kinds = {"Organization": ORGANIZATION_APP, "User": USER_APP}
    return {kind: {"appId": app, "privateKeyFile": str(github.apps[app])} for kind, app in kinds.items()}


@asynccontextmanager
async def _a_namespace(client: httpx.AsyncClient) -> AsyncIterator[str]:
    """A namespace that may run privileged pods; all its pods are gone when the block is left."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    body = {"metadata": {"name": name, "labels": labels}}
    (await client.post("/api/v1/namespaces", json=body)).raise_for_status()
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await _wait(lambda: _status_is(client, account, 200))
    try:
        yield name
    finally:
        pods = f"/api/v1/namespaces/{name}/pods"
        await client.delete(pods, params={"gracePeriodSeconds": 1})
        await _wait(lambda: _is_empty(client, pods))
        await client.delete(f"/api/v1/namespaces/{name}")


async def _status_is(client: httpx.AsyncClient, path: str, status: int) -> bool:
    return (await client.get(path)).status_code == status


async def _is_empty(client: httpx.AsyncClient, path: str) -> bool:
    return not (await client.get(path)).raise_for_status().json()["items"]


async def _wait(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if await holds():
                return
            await asyncio.sleep(LOOK)
