"""Rows that would stay as they are for long: found when a leader begins, and every five minutes."""

from datetime import timedelta
from pathlib import Path

from controller.simulators.cluster import Behaviour
from controller.simulators.github import WebhookRule
from tests.systems import System, a_pool, a_system

POOLS = [a_pool("rv1")]
RESTORE = """
UPDATE jobs SET status = 'running', conclusion = NULL, completed_at = NULL, poll_at = %(at)s
"""


async def forget_its_end(system: System) -> None:
    """As a restored database does: the job runs again, and GitHub was asked about it just now."""
    async with system.database.transaction() as connection:
        at = system.clock.now() + timedelta(minutes=30)
        await connection.execute(RESTORE, {"at": at})


async def test_a_running_job_whose_worker_ended_is_asked_for_within_minutes(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step()
        assert await system.statuses("workers") == {"completed": 1}
        await forget_its_end(system)
        await system.step(60)
        assert await system.statuses() == {"running": 1}
        for _ in range(11):
            await system.step(60)
        assert await system.statuses() == {"completed": 1}


async def test_a_running_job_whose_worker_lives_is_left_alone(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        system.queue("acme/widgets", "rv1", seconds=3000)
        for _ in range(4):
            await system.step()
        assert await system.statuses() == {"running": 1}
        for _ in range(12):
            await system.step(60)
        asked = {each.operation for each in system.github.sim.requests}
        assert "actions/get-job-for-workflow-run" not in asked
        assert await system.statuses() == {"running": 1}


async def test_a_pending_worker_without_a_pod_is_ended_and_its_job_gets_another(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        held = system.cluster.faults.add(operation="create pods", hold="before")
        ids = system.queue("acme/widgets", "rv1")
        await system.settle()
        await system.controller.loop.turn()
        await held.wait_held()
        await system.controller.beside.stop()
        held.release(drop=True)
        (stuck,) = await system.rows("SELECT name, status, runner_id FROM workers")
        assert stuck["status"] == "pending"
        await system.turn()
        (row,) = await system.rows("SELECT * FROM workers WHERE name = %(name)s", name=stuck["name"])
        assert (row["status"], row["failure_reason"]) == ("failed", "pod_missing")
        assert system.github.sim.ledger.runner(stuck["name"]).removed_at is not None
        await system.until(system.finished(ids))


async def test_a_reserved_worker_is_ended_though_its_repository_is_gone(
    database_url: str, tmp_path: Path
) -> None:
    """Nobody can ask for its runner by name any more; its place must not be lost for that."""
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        held = system.github.sim.faults.add(operation=".*jitconfig.*", hold="before")
        (job_id,) = system.queue("jane/one", "rv1")
        await system.settle()
        await system.controller.loop.turn()
        await held.wait_held()
        await system.controller.beside.stop()
        held.release(drop=True)
        system.github.sim.cancel_job(job_id)
        system.github.sim.faults.add(operation="actions/.*-for-repo", status=404, times=None)
        await system.turn()
        (row,) = await system.rows("SELECT status, failure_reason FROM workers")
        assert (row["status"], row["failure_reason"]) == ("failed", "pod_missing")
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))


async def test_a_pod_is_ended_though_its_installation_is_gone(database_url: str, tmp_path: Path) -> None:
    """Nobody can delete its runner any more; its board must not be lost for that."""
    timings = {"podPendingTimeout": "60s"}
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}, timings=timings) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(fail_to_pull="*"))
        system.queue("acme/widgets", "rv1")
        await system.step()
        assert len(system.cluster.pods()) == 1
        system.github.sim.uninstall("acme")
        for _ in range(10):
            await system.step(30)
        (row,) = await system.rows("SELECT status, failure_reason FROM workers")
        assert (row["status"], row["failure_reason"]) == ("failed", "pod_stuck_pending")
        assert all(pod["status"]["phase"] == "Failed" for pod in system.cluster.pods())


async def test_a_pod_that_no_kubelet_has_goes_though_its_installation_is_suspended(
    database_url: str, tmp_path: Path
) -> None:
    """Its deadline never begins: it would hold a board until the owner lets the App back in."""
    pools = [a_pool("rv1", resources={"requests": {"cpu": "900"}})]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 1}) as system:
        system.queue("acme/widgets", "rv1")
        await system.turn()
        (pod,) = system.cluster.pods()
        assert "startTime" not in pod["status"]
        system.github.sim.suspend("acme")
        await system.step(610)
        await system.step(15)
        (row,) = await system.rows("SELECT status, failure_reason FROM workers")
        assert (row["status"], row["failure_reason"]) == ("failed", "pod_stuck_pending")
        assert system.cluster.pods() == []


async def test_a_started_pod_stays_while_its_installation_is_suspended(
    database_url: str, tmp_path: Path
) -> None:
    """Whether its runner is busy cannot be asked."""
    timings = {"podPendingTimeout": "60s"}
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}, timings=timings) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(fail_to_pull="*"))
        system.queue("acme/widgets", "rv1")
        await system.step()
        system.github.sim.suspend("acme")
        for _ in range(10):
            await system.step(30)
        assert await system.statuses("workers") == {"pending": 1}
        assert [pod["status"]["phase"] for pod in system.cluster.pods()] == ["Pending"]
        system.github.sim.unsuspend("acme")
        for _ in range(4):
            await system.step(30)
        assert (await system.statuses("workers"))["failed"] >= 1


async def test_a_pod_that_is_deleted_while_its_job_is_unheard_leaves_no_live_row(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        for action in ("in_progress", "completed"):
            system.github.sim.faults.webhooks.rules.append(WebhookRule("lose", action=action))
        asked = "actions/get-job-for-workflow-run|actions/list-jobs-for-workflow-run"
        rule = system.github.sim.faults.add(operation=asked, status=500, times=None)
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step()
        (pod,) = system.cluster.pods()
        await system.controller.cluster.force_delete_pod(pod["metadata"]["name"])
        system.github.sim.faults.remove(rule.name)
        for _ in range(30):
            await system.step()
        assert await system.statuses() == {"completed": 1}
        assert "running" not in await system.statuses("workers")
        assert "pending" not in await system.statuses("workers")
