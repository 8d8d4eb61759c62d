"""Boards that must not be used, and boards that die."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hack.cluster.client import Cluster
from tests.e2e.nodes import nodes
from tests.e2e.systems import Json, System, a_pool, a_system

UNREACHABLE = "node.kubernetes.io/unreachable"


async def test_cordoned_not_ready_and_wrongly_labelled_nodes_are_no_capacity(
    own_cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    async with (
        nodes(own_cluster, ["spare-cordoned"], "spare", cordoned=True),
        nodes(own_cluster, ["spare-silent"], "spare", alive=False),
        nodes(own_cluster, ["spare-mislabelled"], "spares"),
        a_system(own_cluster, database_url, tmp_path, pools=[a_pool("spare", board="spare")]) as system,
    ):
        await system.iterations(1)
        (job_id,) = system.queue("spare")

        async def considered() -> bool:
            rows = await system.rows("SELECT skip_reason FROM jobs")
            return [row["skip_reason"] for row in rows] == ["no_free_slots"]

        await system.until(considered)
        await system.iterations(3)
        assert await considered()
        assert await system.rows("SELECT 1 FROM workers") == []
        await system.patch_node("spare-cordoned", {"spec": {"unschedulable": None}})

        async def placed() -> bool:
            return [pod["spec"].get("nodeName") for pod in (await system.pods()).values()] == [
                "spare-cordoned"
            ]

        await system.until(placed)
        system.github.sim.cancel_job(job_id)


async def test_a_dead_kubelet_fails_its_workers_and_what_had_not_begun_goes_elsewhere(
    own_cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    pools = [a_pool("quiet", env={"STAND_IN": "silent"}), a_pool("long", board="bench")]
    async with (
        a_system(own_cluster, database_url, tmp_path, pools=pools) as system,
        _revived(own_cluster) as dead,
    ):
        (started,) = system.queue("long", seconds=3600)
        (waiting,) = system.queue("quiet")

        async def both_run() -> bool:
            phases = [pod["status"]["phase"] for pod in (await system.pods()).values()]
            statuses = await system.rows("SELECT status FROM jobs WHERE job_id = %(id)s", id=started)
            return phases == ["Running", "Running"] and [row["status"] for row in statuses] == ["running"]

        await system.until(both_run)
        first = {pod["metadata"]["name"]: pod for pod in (await system.pods()).values()}
        for pod in first.values():
            dead.append(pod["spec"]["nodeName"])
            await asyncio.to_thread(own_cluster.kill_kubelet, dead[-1])

        async def all_failed() -> bool:
            rows = [await system.worker(name) for name in first]
            return {row["failure_reason"] for row in rows} == {"node_unreachable"}

        await system.until(all_failed)
        for name in dead:
            node = (await system.client.get(f"/api/v1/nodes/{name}")).raise_for_status().json()
            assert UNREACHABLE in [taint["key"] for taint in node["spec"]["taints"]]
        elsewhere: list[Json] = []

        async def replaced() -> bool:
            elsewhere[:] = [pod for name, pod in (await system.pods()).items() if name not in first]
            there = set(await system.pods()) & set(first)
            return not there and [pod["status"]["phase"] for pod in elsewhere] == ["Running"]

        await system.until(replaced)
        assert elsewhere[0]["spec"]["nodeName"] not in dead
        assert await _runner_of(system, waiting) is None
        lost = await _runner_of(system, started)
        assert lost in first
        assert (await system.worker(str(lost)))["failure_info"]["node"] == "board-3"
        said = await system.client.get(f"{system.controller_url}/api/jobs/{started}/explain")
        assert said.raise_for_status().json()["reason"] == "node_unreachable"
        assert said.json()["detail"] == {"node": "board-3", "worker": lost}
        assert "must be re-run on GitHub" in said.json()["next_step"]


async def _runner_of(system: System, job_id: int) -> str | None:
    (row,) = await system.rows("SELECT runner_name FROM jobs WHERE job_id = %(id)s", id=job_id)
    found: str | None = row["runner_name"]
    return found


@asynccontextmanager
async def _revived(cluster: Cluster) -> AsyncIterator[list[str]]:
    """Bring the boards that are named inside back to life, for the tests that follow."""
    dead: list[str] = []
    try:
        yield dead
    finally:
        for name in dead:
            await asyncio.to_thread(cluster.revive_kubelet, name)
