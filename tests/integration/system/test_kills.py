"""How a worker is ended that would not end by itself, through the whole system."""

from pathlib import Path

import pytest

from controller.simulators.cluster import Behaviour
from tests.integration.system.reading import asked, lost_jobs, step_until
from tests.systems import System, a_pool, a_system

POOLS = [a_pool("rv1")]
KILL = "actions/delete-self-hosted-runner-from-org"
MINT = "create-installation-access-token"


async def failed_workers(system: System) -> list[dict[str, object]]:
    return await system.rows(
        "SELECT name, failure_reason, failure_info FROM workers WHERE status = 'failed' ORDER BY created_at"
    )


async def test_a_runner_that_never_comes_online_gets_the_deadline_and_its_job_another_worker(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(hang=True))
        ids = system.queue("acme/widgets", "rv1")
        for _ in range(40):
            await system.step(10)
            if await failed_workers(system):
                break
        system.cluster.set_board_behaviour("rv1-1", Behaviour())
        await system.until(system.finished(ids))
        (failed, *_) = await failed_workers(system)
        assert failed["failure_reason"] == "runner_never_registered"
        assert failed["failure_info"]
        (pod,) = [each for each in system.cluster.pods() if each["metadata"]["name"] == failed["name"]]
        assert pod["spec"]["activeDeadlineSeconds"] == 1
        assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
        assert system.github.sim.ledger.runner(str(failed["name"])).removed_why == "deleted"


async def test_a_runner_that_github_calls_busy_is_left_alone(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(hang=True))
        system.github.sim.faults.add(operation=KILL, status=422, times=None)
        system.queue("acme/widgets", "rv1")
        for _ in range(20):
            await system.step(30)
        assert await failed_workers(system) == []
        (pod,) = system.cluster.pods()
        assert pod["spec"]["activeDeadlineSeconds"] > 1
        refusals = await system.rows("SELECT 1 FROM events WHERE kind = 'worker.kill_refused'")
        assert len(refusals) > 1  # and tried again in later iterations


async def test_a_runner_that_got_a_job_while_its_end_was_pending_goes_on_whatever_github_would_say(
    database_url: str, tmp_path: Path
) -> None:
    """GitHub has been seen to delete runners at work: what we know ourselves is not asked again."""
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        (gone,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(gone)
        away = system.github.sim.faults.add(operation=KILL, status=500, times=None)
        for _ in range(25):
            await system.step(30)
        idle = await system.rows("SELECT ending_reason FROM workers")
        assert idle == [{"ending_reason": "runner_idle"}]
        system.github.sim.faults.remove(away.name)
        ids = system.queue("acme/widgets", "rv1", seconds=300)
        system.github.sim.faults.add(operation=KILL, status=204, times=None)
        await system.until(system.finished(ids), 30)
        assert lost_jobs(system) == []
        await system.step()
        assert await system.statuses("workers") == {"completed": 1}


async def test_a_refused_kill_is_not_repeated_with_every_iteration(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 2}) as system:
        for board in ("rv1-1", "rv1-2"):
            system.cluster.set_board_behaviour(board, Behaviour(never_exits=True))
        system.github.sim.faults.add(operation=KILL, status=422, times=None)
        await system.until(system.finished(system.queue("acme/widgets", "rv1", seconds=5)))

        async def refused() -> bool:
            return bool(asked(system, KILL))

        await step_until(system, refused)
        for _ in range(40):  # ten minutes
            await system.step(15)
        idle = len(asked(system, KILL))
        assert 3 <= idle <= 8
        for _ in range(20):  # each push wakes the loop
            system.queue("acme/widgets", "rv1", seconds=5)
            await system.step(1)
        assert len(asked(system, KILL)) <= idle + 1
        refusals = await system.rows("SELECT 1 FROM events WHERE kind = 'worker.kill_refused'")
        assert len(refusals) == len(asked(system, KILL))


async def test_a_worker_on_a_dead_board_is_failed_its_pod_forced_away_and_its_runner_cleaned_up(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        system.queue("acme/widgets", "rv1", seconds=3600)
        await system.turn()
        (pod,) = system.cluster.pods()
        name = pod["metadata"]["name"]
        system.cluster.cut_power("rv1-1")
        ledger = system.github.sim.ledger
        await system.until(lambda: ledger.runner(name).removed_at is not None, seconds=20)
        (failed, *_) = await failed_workers(system)
        assert (failed["name"], failed["failure_reason"]) == (name, "node_unreachable")
        assert name not in [each["metadata"]["name"] for each in system.cluster.pods()]


@pytest.mark.parametrize("answer", ["the App is suspended", "403", "500"])
async def test_a_kill_that_came_to_nothing_is_not_repeated_with_every_iteration(
    answer: str, database_url: str, tmp_path: Path
) -> None:
    timings = {"podPendingTimeout": "60s"}
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 2}, timings=timings) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(fail_to_pull="*"))
        system.cluster.set_board_behaviour("rv1-2", Behaviour(fail_to_pull="*"))
        system.queue("acme/widgets", "rv1")
        await system.step()
        if answer == "the App is suspended":
            system.github.sim.suspend("acme")
        else:
            system.github.sim.faults.add(operation=KILL, status=int(answer), times=None)
        for _ in range(12):  # three minutes
            await system.step(15)
        before = len(asked(system, KILL)) + len(asked(system, MINT))
        assert await system.rows("SELECT 1 FROM events WHERE kind = 'worker.ending'")
        for _ in range(30):  # each push wakes the loop
            system.queue("acme/widgets", "rv1", seconds=5)
            await system.step(1)
        assert len(asked(system, KILL)) + len(asked(system, MINT)) <= before + 4
