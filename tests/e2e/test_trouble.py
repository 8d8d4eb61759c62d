"""Workers that the health checks end, on a real kubelet: they go wrong side by side, since each takes minutes."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from controller.simulators.github.webhook_faults import WebhookRule
from hack.cluster.client import Cluster
from tests.e2e.history import node_of, recorded
from tests.e2e.images import MISSING
from tests.e2e.nodes import boards_of
from tests.e2e.systems import HASTY, Json, System, a_pool, a_system
from tests.postgres import Databases

pytestmark = pytest.mark.asyncio(loop_scope="module")

BENCH = {"board": "bench"}
POOLS = [
    a_pool("silent", **BENCH, env={"STAND_IN": "silent"}),
    a_pool("idle", **BENCH),
    a_pool("busy", **BENCH),
    a_pool("missing", **BENCH, image=MISSING),
    a_pool("huge", resources={"requests": {"cpu": "4000"}}),  # a slot is free, but no node has so many
]
JOB_QUESTIONS = "actions/(list-jobs-for-workflow-run|get-job-for-workflow-run)"
UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A system in which each pool has one worker in trouble."""

    system: System
    workers: dict[str, str]  # pool → worker
    jobs: dict[str, int]

    async def ended(self, pool: str) -> Json:
        """The row of the pool's worker, once it has ended."""
        name = self.workers[pool]

        async def holds() -> bool:
            return bool((await self.system.worker(name))["status"] in ("completed", "failed"))

        await self.system.until(holds)
        return await self.system.worker(name)

    async def report(self, pool: str) -> Json:
        """What was kept of the end of the pool's worker, once it was collected."""
        info: Json = {}

        async def collected() -> bool:
            info.update((await self.ended(pool))["failure_info"] or {})
            return bool(info.get("events"))

        await self.system.until(collected)
        return info

    async def refused(self) -> None:
        """Wait until GitHub has refused to give up the busy runner; then let its job end."""
        system = self.system

        async def counted() -> bool:
            text = (await system.client.get(f"{system.controller_url}/metrics")).text
            found = re.search(r"^switchboard_kills_refused_total (\d+)", text, re.MULTILINE)
            return found is not None and int(found[1]) > 0

        await system.until(counted)
        system.github.sim.faults.remove(UNFINISHED)

    async def pod(self, pool: str) -> Json | None:
        """The pod of the pool's worker."""
        return (await self.system.pods()).get(self.workers[pool])

    async def killed_by_deadline(self, pool: str) -> Json:
        """The pod, once the kubelet has ended it."""

        async def holds() -> bool:
            pod = await self.pod(pool)
            return pod is not None and pod["status"]["phase"] == "Failed"

        await self.system.until(holds)
        pod = await self.pod(pool)
        assert pod is not None
        assert pod["status"]["reason"] == "DeadlineExceeded"
        assert pod["spec"]["activeDeadlineSeconds"] == 1
        return pod


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def trouble(
    cluster: Cluster, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Trouble]:
    """Queue a job for each pool, and cancel all but the busy one's as soon as they have a worker."""
    folder: Path = tmp_path_factory.mktemp("trouble")
    url = await databases.migrated()
    async with a_system(cluster, url, folder, pools=POOLS, timings=HASTY) as system:
        sim = system.github.sim
        sim.faults.add(name=UNFINISHED, operation="runner/finish", status=503, times=None)
        jobs = {pool["name"]: system.queue(pool["name"])[0] for pool in POOLS}
        # Neither a webhook nor a question tells us that the busy one has begun, and its list lags.
        sim.faults.webhooks.rules.append(WebhookRule("lose", action="in_progress", job_id=jobs["busy"]))
        sim.faults.add(operation=JOB_QUESTIONS, status=500, times=None)
        sim.behaviour.busy_lag = 10 * sim.behaviour.busy_offline_after
        workers: dict[str, str] = {}

        async def all_reserved() -> bool:
            rows = await system.rows("SELECT pool, name FROM workers")
            workers.update({row["pool"]: row["name"] for row in rows})
            for name in workers.keys() - {"busy"}:
                sim.cancel_job(jobs[name])
            return len(workers) == len(POOLS)

        await system.until(all_reserved)
        yield Trouble(system, dict(workers), jobs)
        sim.faults.clear()


async def test_a_runner_that_never_registers_is_ended_by_the_deadline(trouble: Trouble) -> None:
    pod = await trouble.killed_by_deadline("silent")
    assert pod["metadata"]["annotations"]["riseproject.dev/ending-reason"] == "runner_never_registered"
    worker = await trouble.ended("silent")
    assert (worker["status"], worker["failure_reason"]) == ("failed", "runner_never_registered")
    info = await trouble.report("silent")
    assert "This runner stays silent" in info["log_tail"]
    assert "Started" in [event["reason"] for event in info["events"]]


async def test_a_runner_that_stays_idle_is_ended_by_the_deadline(trouble: Trouble) -> None:
    pod = await trouble.killed_by_deadline("idle")
    assert pod["metadata"]["annotations"]["riseproject.dev/ending-reason"] == "runner_idle"
    assert (await trouble.ended("idle"))["failure_reason"] == "runner_idle"
    info = await trouble.report("idle")
    assert "Listening for Jobs" in info["log_tail"]
    assert "Started" in [event["reason"] for event in info["events"]]


async def test_a_pod_whose_image_is_missing_is_ended_by_the_deadline(trouble: Trouble) -> None:
    pod = await trouble.killed_by_deadline("missing")
    assert pod["status"]["startTime"]
    worker = await trouble.ended("missing")
    assert (worker["status"], worker["failure_reason"]) == ("failed", "pod_stuck_pending")
    assert MISSING in str((await trouble.report("missing"))["events"])


async def test_a_pod_that_no_node_takes_is_deleted(trouble: Trouble) -> None:
    worker = await trouble.ended("huge")
    assert (worker["status"], worker["failure_reason"]) == ("failed", "pod_stuck_pending")

    async def gone() -> bool:
        return await trouble.pod("huge") is None

    await trouble.system.until(gone)


async def test_a_busy_runner_is_left_alone_when_github_says_422(trouble: Trouble) -> None:
    system = trouble.system
    await trouble.refused()
    await system.finished([trouble.jobs["busy"]])
    truth = system.github.sim.ledger.job(trouble.jobs["busy"])
    assert (truth.conclusion, truth.runner_name) == ("success", trouble.workers["busy"])
    assert (await trouble.ended("busy"))["status"] == "completed"


async def test_the_board_is_used_again(trouble: Trouble) -> None:
    await trouble.refused()
    for pool in ("silent", "idle", "missing", "busy"):
        await trouble.ended(pool)
    (board,) = await boards_of(trouble.system.cluster, "bench")
    async with recorded(trouble.system) as history:
        await trouble.system.finished(trouble.system.queue("idle", jobs=4, seconds=5))
        assert history.most(node_of)[board] == 4  # every slot that went wrong
