"""Boards and images that swallow jobs are held, and tried again, through the whole system."""

from pathlib import Path

from controller.simulators.cluster import Behaviour
from tests.systems import a_pool, a_system


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
