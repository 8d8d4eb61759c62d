"""A release of the chart whose pods really run, on a node that this machine plays; only GitHub is simulated."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.gateways.clock import SystemClock
from hack.cluster.client import Cluster
from tests.chart.helm import CHART, run
from tests.contract.cluster.servers import client_of
from tests.e2e.hosts import Host, a_host
from tests.e2e.systems import TIMINGS, WEBHOOK_SECRET, Json, System
from tests.postgres import opened
from tests.serving import serving
from tests.waiting import until
from tests.worlds import ORGANIZATION_APP, USER_APP, GitHubWorld, a_github

REPOSITORY = "switchboard.local/program"
ADMIN_TOKEN = "0123456789abcdef0123456789abcdef"
LEAVING = 120.0  # seconds
KEYS = "/etc/switchboard/keys"
PATIENCE = "300s"  # of helm; busy machines start programs slowly


@dataclass(frozen=True, slots=True)
class Release:
    """A release, the world around it, and helm."""

    name: str
    namespace: str
    system: System
    host: Host
    values: Json

    async def install(self, tag: str, chart: Path = CHART) -> None:
        """Install it, or change it to another program, and wait until its pods are ready."""
        file = self.system.folder / "values.yaml"
        given = {**self.values, "image": {"repository": REPOSITORY, "tag": tag}}
        file.write_text(yaml.safe_dump(given), encoding="utf-8")
        await self.helm("upgrade", "--install", self.name, str(chart), "--values", str(file), *self._waiting)

    async def roll_back(self, revision: int) -> None:
        """Return to an earlier revision, and wait until its pods are ready."""
        await self.helm("rollback", self.name, str(revision), *self._waiting)

    async def helm(self, *arguments: str) -> None:
        """Run helm on the release; it must succeed."""
        where = ["--namespace", self.namespace]
        code, said = await asyncio.to_thread(run, *arguments, *where, cluster=self.system.cluster.kubeconfig)
        assert code == 0, said

    def leaders(self) -> list[str]:
        """The tags of the programs that have led, in the order in which their pods came."""
        pods = [each for each in self.host.played.values() if each.component == "controller"]
        return [each.image.rpartition(":")[2] for each in pods if each.wrote("leader.acquired")]

    @property
    def controller_url(self) -> str:
        """Where a controller answers."""
        return self.host.ready("controller")[0].url

    @property
    def _waiting(self) -> tuple[str, ...]:
        return ("--wait", "--timeout", PATIENCE)


@asynccontextmanager
async def a_release(
    cluster: Cluster,
    database_url: str,
    folder: Path,
    *,
    programs: Mapping[str, Path],
    pools: Sequence[Json],
    name: str = "switchboard",
    namespace: str = "",
    runners: str = "",
    **config: Any,
) -> AsyncIterator[Release]:
    """Everything that a release needs, ready to be installed; `programs` are folders by image tag."""
    mark = uuid.uuid4().hex[:8]
    namespace = namespace or f"release-{mark}"
    runners = runners or f"runners-{mark}"
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(client_of(cluster.kubeconfig))
        github = await stack.enter_async_context(a_github(SystemClock(), WEBHOOK_SECRET))
        images = {f"{REPOSITORY}:{tag}": tree for tag, tree in programs.items()}
        host = await stack.enter_async_context(a_host(cluster, f"host-{mark}", folder, images))
        database = await stack.enter_async_context(opened(database_url))
        service = Starlette(routes=[Route("/webhook", _Service(host).forward, methods=["POST"])])
        address = await stack.enter_async_context(serving(service))
        github.sim.webhook_url = f"{address}/webhook"
        await _make_namespace(client, namespace)
        stack.push_async_callback(_gone, client, [namespace, runners])
        stack.push_async_callback(_uninstall, cluster, name, namespace)
        system = System(cluster, github, database, client, runners, "", folder)
        given = _values(github, database_url, runners, pools, config)
        yield Release(name, namespace, system, host, given)


class _Service:
    """Does what the Service of the receiver does: hands a request to a pod that is ready."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def forward(self, request: Request) -> Response:
        """The answer of the first pod that gives one; deliveries that nobody takes are GitHub's to remember."""
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        async with httpx.AsyncClient() as client:
            for pod in self._host.ready("webhook"):
                try:
                    answer = await client.post(f"{pod.url}/webhook", content=body, headers=headers)
                    return Response(answer.content, answer.status_code)
                except httpx.TransportError:
                    continue
        return Response(status_code=503)


def _values(
    github: GitHubWorld, database_url: str, runners: str, pools: Sequence[Json], config: Mapping[str, Any]
) -> Json:
    kinds = {"Organization": ORGANIZATION_APP, "User": USER_APP}
    apps = {kind: {"appId": app, "privateKeyFile": f"{KEYS}/{app}.pem"} for kind, app in kinds.items()}
    return {
        "secrets": {
            "databaseUrl": database_url,
            "webhookSecret": github.webhook_secret,
            "adminToken": ADMIN_TOKEN,
        },
        "appKeys": {"files": {f"{app}.pem": file.read_text() for app, file in github.apps.items()}},
        "config": {
            "github": {"apiUrl": github.base_url, "apps": apps},
            "kubernetes": {"namespace": runners},
            "pools": list(pools),
            "timings": TIMINGS,
            **config,
        },
    }


async def _make_namespace(client: httpx.AsyncClient, name: str) -> None:
    (await client.post("/api/v1/namespaces", json={"metadata": {"name": name}})).raise_for_status()


async def _uninstall(cluster: Cluster, name: str, namespace: str) -> None:
    """Take the release away, if the test has not done so."""
    arguments = ("uninstall", name, "--namespace", namespace, "--no-hooks", "--ignore-not-found")
    await asyncio.to_thread(run, *arguments, cluster=cluster.kubeconfig)


async def _gone(client: httpx.AsyncClient, names: Sequence[str]) -> None:
    """Leave the boards empty: nothing of these namespaces is there any more."""
    for name in names:
        path = f"/api/v1/namespaces/{name}"
        await client.delete(f"{path}/pods", params={"gracePeriodSeconds": 1})
        await client.delete(path)

        async def is_gone(path: str = path) -> bool:
            return (await client.get(path)).status_code == 404

        await until(is_gone, LEAVING)
