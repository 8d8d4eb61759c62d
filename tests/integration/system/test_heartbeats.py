"""Heartbeats, snapshots and retention through the whole system."""

from datetime import timedelta
from pathlib import Path

from controller.domain.sightings import Unknown
from controller.simulators.cluster import Behaviour
from tests.systems import a_pool, a_system


async def test_a_beat_a_minute_tells_how_every_live_worker_is(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        system.queue("acme/widgets", "rv1", seconds=600)
        for _ in range(30):
            await system.step()
        (worker,) = await system.rows("SELECT * FROM workers")
        assert worker["pod_phase"] == "Running"
        assert (worker["runner_status"], worker["runner_busy"]) == ("online", True)
        assert system.clock.now() - worker["heartbeat_at"] <= timedelta(minutes=1)


async def test_a_snapshot_a_minute_tells_how_slots_and_queue_are(database_url: str, tmp_path: Path) -> None:
    pools = [a_pool("rv1"), a_pool("rv2")]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 2}) as system:
        system.queue("acme/widgets", "rv1", jobs=5, seconds=1200)
        for _ in range(40):
            await system.step(15)
        rows = await system.rows("SELECT * FROM board_snapshots WHERE pool = 'rv1' ORDER BY at")
        assert len(rows) == len({row["at"] for row in rows}) == 10
        last = rows[-1]
        assert (last["slots"], last["free"], last["busy"], last["queue_depth"]) == (2, 0, 2, 3)
        assert last["oldest_wait_seconds"] > rows[-2]["oldest_wait_seconds"] > 0
        (empty,) = await system.rows(
            "SELECT DISTINCT slots, queue_depth FROM board_snapshots WHERE pool = 'rv2'"
        )
        assert empty == {"slots": 0, "queue_depth": 0}


async def test_a_worker_that_no_watch_shows_is_fetched_by_name(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(hang=True))
        system.cluster.set_board_behaviour("rv1-2", Behaviour(hang=True))
        system.queue("acme/widgets", "rv1", jobs=2, seconds=1200)
        for _ in range(4):
            await system.step()
        gone, alive = sorted(pod["metadata"]["name"] for pod in system.cluster.pods())
        for operation in ("list pods", "watch pods"):
            system.cluster.faults.add(operation=operation, status=503, times=10_000)
        system.cluster.drop_watches()
        await system.controller.cluster.force_delete_pod(gone)
        for _ in range(20):
            await system.step(10)
        assert isinstance(system.controller.cluster.pods(), Unknown)
        rows = await system.rows("SELECT name, status, failure_reason FROM workers ORDER BY name")
        assert rows == [
            {"name": gone, "status": "failed", "failure_reason": "pod_missing"},
            {"name": alive, "status": "running", "failure_reason": None},
        ]


async def test_old_side_data_is_forgotten_and_rows_stay(database_url: str, tmp_path: Path) -> None:
    retention = {"events": "2d", "snapshots": "1d", "failureLogs": "3d"}
    pools, boards = [a_pool("rv1")], {"rv1": 1}
    async with a_system(database_url, tmp_path, pools=pools, boards=boards, retention=retention) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        (job_id,) = system.queue("acme/widgets", "rv1")
        for _ in range(4):
            await system.step()
        system.github.sim.cancel_job(job_id)
        system.github.sim.suspend("acme")
        await system.step()
        (failed, *_) = await system.rows("SELECT failure_info FROM workers WHERE status = 'failed'")
        assert "log_tail" in failed["failure_info"]
        before = await system.statuses("workers")
        await system.step(timedelta(days=1, hours=2).total_seconds())
        assert await system.rows("SELECT 1 FROM events WHERE kind = 'worker.failed'")
        old = {"at": system.clock.now() - timedelta(days=1)}
        assert await system.rows("SELECT 1 FROM board_snapshots WHERE at < %(at)s", **old) == []
        await system.step(timedelta(days=3).total_seconds())
        await system.step()
        (worker, *_) = await system.rows("SELECT failure_info FROM workers WHERE status = 'failed'")
        assert "log_tail" not in worker["failure_info"]
        assert worker["failure_info"]["exit_code"] == failed["failure_info"]["exit_code"]
        kept = await system.rows(
            "SELECT kind FROM events WHERE at < %(at)s", at=system.clock.now() - timedelta(days=2)
        )
        assert {row["kind"] for row in kept} == {"installation.created", "installation.suspend"}
        assert await system.statuses("workers") == before


async def test_a_clock_that_is_set_back_stops_nothing_that_comes_every_so_often(
    database_url: str, tmp_path: Path
) -> None:
    """A machine that began with a wrong time and is set right: what it did then lies before it, by a day."""
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step(60)
        await system.step(-86_400)
        now = system.clock.now()
        await system.rows("UPDATE workers SET completed_at = %(at)s RETURNING 1", at=now - timedelta(hours=1))
        await system.rows(
            "UPDATE jobs SET status = 'running', conclusion = NULL, completed_at = NULL, poll_at = %(at)s RETURNING 1",
            at=now + timedelta(minutes=30),
        )
        await system.rows(
            "INSERT INTO events (at, source, kind) VALUES (%(at)s, 'webhook', 'old') RETURNING 1",
            at=now - timedelta(days=31),
        )
        for _ in range(7):
            await system.step(60)
        beats = await system.rows(
            "SELECT at FROM board_snapshots WHERE at > %(now)s AND at < %(end)s",
            now=now,
            end=now + timedelta(hours=1),
        )
        assert len(beats) == 7
        assert await system.statuses() == {"completed": 1}  # GitHub was asked about it
        for _ in range(6):
            await system.step(600)
        assert await system.rows("SELECT 1 FROM events WHERE kind = 'old'") == []


async def test_what_a_clock_that_was_ahead_put_off_is_pulled_back(database_url: str, tmp_path: Path) -> None:
    """Back-offs, polls, breakers, and runners that idle: all of them had counted from tomorrow."""
    timings = {"idleTimeout": "2m"}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, timings=timings
    ) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        waiting = system.queue("jane/one", "rv1")
        for _ in range(10):
            await system.step(30)
        system.cluster.cordon("rv1-1")
        system.cluster.add_board("rv1-2", {"riseproject.dev/board": "rv1"})
        (cancelled,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(cancelled)
        for _ in range(4):
            await system.step(20)
        now = system.clock.now()
        assert await system.rows("SELECT 1 FROM workers WHERE idle_since IS NOT NULL")
        assert await system.rows("SELECT 1 FROM jobs WHERE retry_after > %(now)s", now=now)
        assert await system.rows("SELECT 1 FROM holds WHERE until > %(now)s", now=now)
        system.cluster.cordon("rv1-2")
        system.cluster.uncordon("rv1-1")
        system.cluster.set_board_behaviour("rv1-1", Behaviour())
        await system.step(-86_400)
        for _ in range(12):
            await system.step(60)
        assert system.finished(waiting)()
        assert not await system.rows("SELECT 1 FROM workers WHERE status IN ('pending', 'running')")
