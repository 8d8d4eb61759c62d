"""What makes the loop come round: a recorded job, a pod's end, and else a pause of fifteen seconds."""

import asyncio
from datetime import timedelta
from pathlib import Path

from tests.systems import System, a_pool, a_system
from tests.waiting import until

POOLS = [a_pool("rv1")]


async def rested(system: System) -> None:
    """Come round until nobody asks for more."""
    await system.turn()
    assert not system.controller.loop.rung


async def test_a_recorded_job_wakes_the_loop(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        await rested(system)
        system.queue("acme/widgets", "rv1")

        async def woken() -> bool:
            await system.settle()
            return system.controller.loop.rung

        await until(woken)


async def test_a_pod_that_ends_wakes_the_loop(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        system.queue("acme/widgets", "rv1", seconds=30)
        await rested(system)
        system.github.sim.webhook_url = None  # nobody is told of the job's end
        await system.clock.advance(timedelta(seconds=10))
        await rested(system)
        await system.clock.advance(timedelta(seconds=60))

        async def woken() -> bool:
            await system.settle()
            return system.controller.loop.rung

        await until(woken)
        assert [pod["status"]["phase"] for pod in system.cluster.pods()] == ["Succeeded"]


async def test_without_a_wake_the_loop_comes_round_after_fifteen_seconds(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        stop = asyncio.Event()
        running = asyncio.create_task(system.controller.loop.run(stop))

        async def paused_after(iterations: int) -> None:
            async def paused() -> bool:
                await system.settle()
                due = system.clock.next_due
                return system.controller.loop.snapshot().iterations >= iterations and due is not None

            await until(paused)

        await paused_after(1)
        seen = system.controller.loop.snapshot().iterations
        await system.clock.advance(timedelta(seconds=14))
        assert system.controller.loop.snapshot().iterations == seen
        await system.clock.advance(timedelta(seconds=1))
        await paused_after(seen + 1)
        stop.set()
        await running


async def test_sync_workers_holds_the_lock_of_the_workers_table_and_leaves_webhooks_free(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 0}) as system:
        async with system.database.transaction() as connection:
            await connection.execute("LOCK TABLE workers IN ROW EXCLUSIVE MODE")
            turning = asyncio.create_task(system.controller.loop.turn())

            async def waits() -> bool:
                rows = await system.rows(
                    "SELECT mode FROM pg_locks WHERE relation = 'workers'::regclass AND NOT granted"
                )
                return [row["mode"] for row in rows] == ["ExclusiveLock"]

            await until(waits)
            system.queue("acme/widgets", "rv1")

            async def stored() -> bool:
                return await system.statuses() == {"pending": 1}

            await until(stored)
        await turning
