"""Boards and images that swallow jobs are held, and tried again, through the whole system."""

from datetime import timedelta
from pathlib import Path

from controller.simulators.cluster import Behaviour
from tests.integration.system.reading import jit_calls
from tests.systems import BOARD_LABEL, a_pool, a_system


async def test_one_bad_board_does_not_swallow_every_job(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 4}) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        ids = system.queue("acme/widgets", "rv1", jobs=30, seconds=20)
        await system.until(system.finished(ids))
        wasted = await system.rows("SELECT count(*) AS rows FROM workers WHERE status = 'failed'")
        assert 3 <= wasted[0]["rows"] <= 6
        (hold,) = await system.rows("SELECT scope, target, why FROM holds")
        assert hold == {"scope": "board", "target": "rv1-1", "why": "breaker"}


async def test_a_held_board_is_probed_and_used_again_once_it_works(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        ids = system.queue("acme/widgets", "rv1", jobs=4, seconds=10)
        for _ in range(60):
            await system.step()
        assert await system.rows("SELECT 1 FROM events WHERE kind = 'breaker.opened'")
        system.cluster.set_board_behaviour("rv1-1", Behaviour())
        await system.until(system.finished(ids), seconds=30)
        await system.step()
        assert await system.rows("SELECT 1 FROM holds") == []
        assert await system.rows("SELECT 1 FROM events WHERE kind = 'breaker.closed'")


async def test_a_refused_runner_version_does_not_loop(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        system.github.sim.refuse_runner_versions("acme", "9.0.0")
        ids = system.queue("acme/widgets", "rv1", jobs=6)
        for _ in range(120):  # ten minutes
            await system.step()
        calls = [each for each in system.github.sim.requests if "generate" in each.operation]
        assert len(calls) <= 5
        (job, *_) = await system.rows("SELECT skip_reason, skip_detail FROM jobs ORDER BY job_id DESC")
        assert job["skip_reason"] == "held"
        assert "runner_version_refused" in job["skip_detail"]["note"]
        reasons = await system.rows("SELECT DISTINCT failure_reason FROM workers")
        assert reasons == [{"failure_reason": "runner_version_refused"}]
        system.github.sim.refuse_runner_versions("acme", None)
        await system.until(system.finished(ids), seconds=60)


async def test_one_black_hole_among_twelve_boards_leaves_eleven_boards_worth_of_throughput(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 12}) as system:
        system.cluster.set_board_behaviour("rv1-3", Behaviour(crash=1))
        ids = system.queue("acme/widgets", "rv1", jobs=60, seconds=50)
        busy = []
        done = system.finished(ids)
        for _ in range(120):
            if done():
                break
            await system.step()
            running = [job for job in system.github.sim.ledger.jobs() if job.status == "in_progress"]
            waiting = [job for job in system.github.sim.ledger.jobs() if job.status == "queued"]
            if len(waiting) > 12:
                busy.append(len(running))
        assert done()
        assert sorted(busy)[len(busy) // 2] == 11  # what eleven good boards do while enough jobs wait
        wasted = await system.rows("SELECT count(*) AS rows FROM workers WHERE status = 'failed'")
        assert wasted[0]["rows"] <= 8
        assert await system.rows("SELECT 1 FROM events WHERE kind = 'breaker.opened'")


async def test_a_board_of_several_slots_is_probed_by_one_worker(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        system.cluster.add_board("big", {BOARD_LABEL: "rv1"}, slots=4)
        system.cluster.set_board_behaviour("big", Behaviour(crash=1))
        ids = system.queue("acme/widgets", "rv1", jobs=4, seconds=60)
        await system.turn()
        await system.step()  # four at once, four failures
        system.cluster.set_board_behaviour("big", Behaviour(start_time=timedelta(seconds=20)))
        made = jit_calls(system)
        while jit_calls(system) == made:
            await system.step(20)
        await system.step(5)
        assert jit_calls(system) == made + 1  # the other slots are free, but one worker tries first
        await system.step(20)
        await system.step(5)
        assert jit_calls(system) == made + 4  # it has a job: the board works
        await system.until(system.finished(ids), 20)


async def test_a_new_image_is_not_held_for_what_the_old_one_did(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        system.github.sim.refuse_runner_versions("acme", "9.0.0")
        ids = system.queue("acme/widgets", "rv1", jobs=2)
        await system.turn()
        await system.step()
        assert await system.rows("SELECT 1 FROM holds")
        system.github.sim.refuse_runner_versions("acme", None)
        async with system.database.transaction() as connection:  # as if the pool had had another image then
            await connection.execute("UPDATE workers SET image = 'registry.example/runner:0'")
        await system.step()
        assert await system.rows("SELECT 1 FROM holds") == []
        await system.until(system.finished(ids), 30)
