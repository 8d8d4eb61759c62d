"""A job from its webhook to a finished real pod, and many jobs on few boards."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hack.cluster.client import Cluster
from tests.e2e.systems import Json, System, a_pool, a_system

GRACE = {"podDeleteGrace": "5s"}


@pytest.fixture
async def system(cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[System]:
    pools = [a_pool("rv1")]
    async with a_system(cluster, database_url, tmp_path, pools=pools, timings=GRACE) as system:
        yield system


async def test_a_queued_webhook_becomes_a_pod_that_runs_the_job_and_goes(system: System) -> None:
    (job_id,) = system.queue("rv1", seconds=3)
    found: list[Json] = []

    async def runs() -> bool:
        found[:] = [pod for pod in (await system.pods()).values() if pod["status"]["phase"] == "Running"]
        return bool(found)

    await system.until(runs)
    (pod,) = found
    assert pod["spec"]["nodeName"] in ("board-1", "board-2")
    assert pod["spec"]["hostNetwork"] is True
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["privileged"] is True
    (variable,) = [each for each in container["env"] if each["name"] == "RUNNER_JITCONFIG"]
    assert variable["valueFrom"]["secretKeyRef"]["name"] == pod["metadata"]["name"]
    assert await system.runner_secrets() == [pod["metadata"]["name"]]
    await system.finished([job_id])
    truth = system.github.sim.ledger.job(job_id)
    assert (truth.conclusion, truth.runner_name) == ("success", pod["metadata"]["name"])

    async def all_gone() -> bool:
        return not await system.pods() and not await system.runner_secrets()

    await system.until(all_gone)
    worker = await system.worker(pod["metadata"]["name"])
    assert (worker["status"], worker["job_id"], worker["node"]) == (
        "completed",
        job_id,
        pod["spec"]["nodeName"],
    )
