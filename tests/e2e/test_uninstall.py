"""What the README says about uninstalling, word for word: nothing of ours is left in the cluster or on GitHub."""

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from controller.gateways.kubernetes.parse import ADVERTISED
from hack.cluster.boards import RESOURCE
from hack.cluster.client import Cluster
from tests.chart.helm import ROOT, run
from tests.chart.objects import PLACES, teach_monitoring
from tests.contract.cluster.servers import client_of
from tests.e2e.crowd import a_crowd, beside, persistent
from tests.e2e.history import recorded
from tests.e2e.nodes import make_node
from tests.e2e.releases import ADMIN_TOKEN, Release, a_release
from tests.e2e.systems import MERGE_PATCH, TIMINGS, System, a_pool

README = (ROOT / "README.md").read_text(encoding="utf-8")
NAME = "switchboard"  # of release and namespace, as in the README
RUNNERS = "switchboard-runners"
BOARDS = ("bare-1", "bare-2")
# Who has no job soon ends: runners are looked at from half the registration timeout on.
IDLE_SOON = {**TIMINGS, "registrationTimeout": "20s", "idleTimeout": "20s"}
LOOK = 0.5


@pytest.mark.timeout(1_200)
async def test_after_the_uninstallation_of_the_readme_nothing_is_left(
    own_cluster: Cluster, empty_database_url: str, tmp_path: Path
) -> None:
    async with (
        boards_without_slots(own_cluster),
        a_release(
            own_cluster,
            empty_database_url,
            tmp_path,
            programs={"present": ROOT},
            pools=[a_pool("bare", board="bare")],
            name=NAME,
            namespace=NAME,
            runners=RUNNERS,
            boards={"advertise": True},
            timings=IDLE_SOON,
        ) as release,
        recorded(release.system) as history,
        a_crowd(release.system, history),
    ):
        system = release.system
        await release.install("present")
        await workers_in_every_state(release)
        await sound(release)
        await pause_and_wait(release)
        for line in commands():
            await obey(release, line)
        assert not system.github.sim.world.runners
        assert await left(system.client) == []
        for name in BOARDS:
            node = (await system.client.get(f"/api/v1/nodes/{name}")).raise_for_status().json()
            assert RESOURCE not in node["status"]["capacity"]
            assert ADVERTISED not in node["metadata"]["annotations"]


@asynccontextmanager
async def boards_without_slots(cluster: Cluster) -> AsyncIterator[None]:
    """Boards whose slots nobody offers yet; what is offered becomes allocatable, as kubelets see to it."""
    async with client_of(cluster.kubeconfig) as client:
        for name in BOARDS:
            node = make_node(name, "bare")
            for kind in ("capacity", "allocatable"):
                node["status"][kind] = {k: v for k, v in node["status"][kind].items() if k != RESOURCE}
            (await client.post("/api/v1/nodes", json=node)).raise_for_status()
        try:
            async with beside(_allocate(client)):
                yield
        finally:
            for name in BOARDS:
                await client.delete(f"/api/v1/nodes/{name}")


async def _allocate(client: httpx.AsyncClient) -> None:
    while True:
        for name in BOARDS:
            path = f"/api/v1/nodes/{name}"
            answer = await persistent(partial(client.get, path))
            status = answer.raise_for_status().json()["status"]
            offered = status["capacity"].get(RESOURCE)
            if status["allocatable"].get(RESOURCE) != offered:
                patch = {"status": {"allocatable": {RESOURCE: offered}}}
                change = partial(client.patch, f"{path}/status", json=patch, headers=MERGE_PATCH)
                (await persistent(change)).raise_for_status()
        await asyncio.sleep(LOOK)


async def workers_in_every_state(release: Release) -> None:
    """One worker has finished and its pod is kept, one runs a job, and one is registered and has none."""
    system = release.system
    await system.finished(system.queue("bare"))
    system.queue("bare", seconds=20)
    await system.until(lambda: _running(system, 1))
    (idle,) = system.queue("bare", seconds=20)
    await system.until(lambda: _workers(system, 2))
    system.github.sim.cancel_job(idle)
    assert await system.runner_secrets()


async def _running(system: System, jobs: int) -> bool:
    return (await system.statuses()).get("running", 0) == jobs


async def _workers(system: System, live: int) -> bool:
    rows = await system.rows("SELECT 1 FROM workers WHERE status IN ('pending', 'running')")
    return len(rows) == live


async def sound(release: Release) -> None:
    """`helm test` finds nothing wrong, once the deliveries of before there was a receiver have come too."""
    sim = release.system.github.sim
    for delivery in [each for each in sim.world.deliveries.values() if not each.ok]:
        sim.webhooks.redeliver(delivery)
    await sim.settle()
    await release.helm("test", release.name)


async def pause_and_wait(release: Release) -> None:
    """The sentence before the commands."""
    sentence = section().partition("\n\n")[0]
    assert "`POST /api/pools/NAME/pause`" in sentence
    assert "wait until `/workers` shows none pending or running" in sentence
    headers = {"authorization": f"Bearer {ADMIN_TOKEN}"}
    async with httpx.AsyncClient(base_url=release.controller_url, headers=headers) as client:
        (await client.post("/api/pools/bare/pause")).raise_for_status()

        async def none_runs() -> bool:
            pages = [await client.get(f"/workers.json?status={status}") for status in ("pending", "running")]
            return not any(page.raise_for_status().json() for page in pages)

        await release.system.until(none_runs)


def section() -> str:
    """What the README says about uninstalling."""
    return README.partition("### Uninstall\n\n")[2].partition("\n#")[0]


def commands() -> list[str]:
    """The commands there."""
    return [line.strip() for line in section().splitlines() if line.startswith("    ")]


async def obey(release: Release, line: str) -> None:
    """Do what a command of the README says; kubectl is spoken for by the API."""
    program, *arguments = shlex.split(line)
    if program == "helm":
        kubeconfig = release.system.cluster.kubeconfig
        code, said = await asyncio.to_thread(run, *arguments, cluster=kubeconfig)
        assert code == 0, said
        return
    assert [program, *arguments[:2]] == ["kubectl", "delete", "namespace"], line
    names = arguments[2:]
    assert names == [release.namespace, release.system.namespace]
    for name in names:
        (await release.system.client.delete(f"/api/v1/namespaces/{name}")).raise_for_status()
    for name in names:
        await release.system.until(lambda name=name: _is_gone(release.system, name))  # type: ignore[misc]


async def _is_gone(system: System, namespace: str) -> bool:
    return (await system.client.get(f"/api/v1/namespaces/{namespace}")).status_code == 404


async def left(client: httpx.AsyncClient) -> list[str]:
    """Every object of any namespace, or of none, that bears the release's name."""
    await teach_monitoring(client)
    found: list[str] = []
    for kind, place in PLACES.items():
        everywhere = place.replace("/namespaces/{}", "")
        answer = await client.get(everywhere, params={"labelSelector": f"app.kubernetes.io/instance={NAME}"})
        found += [f"{kind} {each['metadata']['name']}" for each in answer.raise_for_status().json()["items"]]
    return found
