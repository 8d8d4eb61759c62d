"""A job from its webhook to a finished real pod, and many jobs on few boards."""

import asyncio
from itertools import pairwise
from pathlib import Path

from controller.simulators.github.ledger import JobTruth
from controller.simulators.github.webhook_faults import WebhookRule
from hack.cluster.client import Cluster
from tests.e2e.history import ENDED, History, node_of, recorded
from tests.e2e.nodes import boards_of
from tests.e2e.systems import Json, System, a_pool, a_system

GRACE = {"podDeleteGrace": "5s"}
NEVER = {"pollInterval": "1h"}  # what happens in time was not woken by the clock
REGISTER = "actions/generate-runner-jitconfig-for-org"


async def test_a_queued_webhook_becomes_a_pod_that_runs_the_job_and_goes(
    cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    async with (
        a_system(cluster, database_url, tmp_path, pools=[a_pool("rv1")], timings=GRACE) as system,
        recorded(system) as history,
    ):
        await _follow_one_job(system, history)


async def _follow_one_job(system: System, history: History) -> None:
    (job_id,) = system.queue("rv1", seconds=10)
    found: list[Json] = []

    async def runs() -> bool:
        found[:] = [pod for pod in (await system.pods()).values() if pod["status"]["phase"] == "Running"]
        return bool(found)

    await system.until(runs)
    (pod,) = found
    node = (await system.client.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")).raise_for_status().json()
    assert node["metadata"]["labels"]["riseproject.dev/board"] == "rv1"
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
    assert (worker["status"], worker["node"]) == ("completed", pod["spec"]["nodeName"])
    phases = [each["status"]["phase"] for kind, each in history.events if kind != "DELETED"]
    assert list(dict.fromkeys(phases)) == ["Pending", "Running", "Succeeded"]


async def test_ten_waiting_jobs_share_two_boards_one_pod_each(
    cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    async with (
        a_system(cluster, database_url, tmp_path, pools=[a_pool("rv1")], timings=NEVER) as system,
        recorded(system) as history,
    ):
        await system.finished(system.queue("rv1", jobs=10))
        assert sorted(history.most(node_of).values()) == [1, 1]
        assert history.most(lambda pod: "all")["all"] == 2  # none waits in the cluster for a board
        assert len(history.created) == len(set(history.created)) == 10

        async def all_ended() -> bool:
            return await system.statuses("workers") == {"completed": 10}

        await system.until(all_ended)
        kept = await system.pods()  # for the six hours in which their logs can be read
        assert {pod["status"]["phase"] for pod in kept.values()} == {"Succeeded"}
        assert set(kept) == set(await system.runner_secrets()) == set(history.created)


async def test_the_watch_alone_wakes_the_next_job_when_a_board_frees(
    cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    """No webhook says that a job has ended; whatever else wakes the loop is a webhook or asks GitHub something."""
    (board, *_) = await boards_of(cluster, "rv1")
    pools = [a_pool("rv1", nodeSelector={"kubernetes.io/hostname": board})]
    async with a_system(cluster, database_url, tmp_path, pools=pools, timings=NEVER) as system:
        sim = system.github.sim
        sim.faults.webhooks.rules.append(WebhookRule("lose", action="completed", times=None))
        ids = system.queue("rv1", jobs=4, seconds=3)  # the loop rests by the time that one ends

        async def all_ran() -> bool:
            return all(sim.ledger.job(job_id).status == "completed" for job_id in ids)

        await system.until(all_ran)
        assert await system.rows("SELECT 1 FROM events WHERE outcome = 'job_marked_completed'") == []
        ran = sorted((sim.ledger.job(job_id) for job_id in ids), key=lambda job: str(job.started_at))
        assert {REGISTER} in [_said_between(system, *two) for two in pairwise(ran)]


def _said_between(system: System, before: JobTruth, after: JobTruth) -> set[str]:
    """What GitHub was asked, and what it told by itself, after one job had ended and until the next began."""
    ended, began = before.completed_at, after.started_at
    assert ended is not None
    assert began is not None
    sim = system.github.sim
    asked = {each.operation for each in sim.requests if ended <= each.at <= began}
    told = {
        each.event
        for each in sim.world.deliveries.values()
        if each.created_at < began and (each.delivered_at is None or each.delivered_at >= ended)
    }
    return asked | told


async def test_an_api_server_that_restarts_under_load_orphans_and_doubles_nothing(
    own_cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    pools = [a_pool("rv1"), a_pool("bench", board="bench")]
    async with (
        a_system(own_cluster, database_url, tmp_path, pools=pools) as system,
        recorded(system) as history,
    ):
        ids = [*system.queue("rv1", jobs=6, seconds=2), *system.queue("bench", jobs=12, seconds=2)]
        for some in (2, 8):

            async def begun(some: int = some) -> bool:
                return len(history.created) >= some

            await system.until(begun)
            await asyncio.to_thread(own_cluster.restart_api_server)
        await system.finished(ids)
        rows = await system.rows("SELECT name, failure_reason FROM workers WHERE status = 'failed'")
        failed = {row["name"]: row["failure_reason"] for row in rows}
        assert set(failed.values()) <= {"provision_failed"}  # while it was away
        assert len(history.created) == len(set(history.created))
        assert history.most(node_of).total() <= 6
        ran = [system.github.sim.ledger.job(job_id).runner_name for job_id in ids]
        assert len(ran) == len(set(ran))
        # A pod whose creation nobody answered for may have come to be without a worker to run it.
        assert set(history.created) - set(ran) <= set(failed)

        async def nothing_orphaned() -> bool:
            live = await system.rows("SELECT 1 FROM workers WHERE status IN ('pending', 'running')")
            secrets, pods = set(await system.runner_secrets()), await system.pods()
            all_ended = all(pod["status"]["phase"] in ENDED for pod in pods.values())
            return not live and all_ended and not system.github.sim.world.runners and secrets <= set(pods)

        await system.until(nothing_orphaned)
