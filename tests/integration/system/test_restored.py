"""A database restored from an old dump, under running jobs."""

from pathlib import Path

import pytest

from tests.integration.system.reading import all_completed, jit_calls, lose_leadership, lost_jobs, step_until
from tests.systems import System, a_pool, a_system

HOUR = 3600


class Dump:
    """Every table as it was."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._tables: list[str] = []

    async def take(self) -> None:
        """Copy all rows aside."""
        found = await self._system.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        self._tables = [row["tablename"] for row in found]
        for table in self._tables:
            await self._run(f"CREATE TABLE dump_{table} AS TABLE {table}")

    async def restore(self) -> None:
        """Forget all that happened since."""
        await self._run(f"TRUNCATE {', '.join(self._tables)}")
        for table in self._tables:
            await self._run(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM dump_{table}")

    async def _run(self, statement: str) -> None:
        async with self._system.database.transaction() as connection:
            await connection.execute(statement.encode())


async def status_of(system: System, job_id: int) -> tuple[str, str]:
    """The status of a job and how it was learnt of."""
    query = "SELECT status, learnt_from FROM jobs WHERE job_id = %(job_id)s"
    (row,) = await system.rows(query, job_id=job_id)
    return row["status"], row["learnt_from"]


async def test_a_database_restored_from_an_hour_old_dump_under_running_jobs(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}) as system:
        (lasting,) = system.queue("acme/widgets", "rv1", seconds=3 * HOUR)
        (ending,) = system.queue("acme/widgets", "rv1", seconds=HOUR / 3)
        (short,) = system.queue("acme/widgets", "rv1", seconds=HOUR / 10)
        await system.turn()
        await system.step(10)
        (waiting,) = system.queue("acme/widgets", "rv1", seconds=2 * HOUR)
        await system.turn()
        dump, taken_at = Dump(system), system.clock.now()
        await dump.take()
        (over,) = system.queue("acme/widgets", "rv1", seconds=100)
        (begun,) = system.queue("acme/widgets", "rv1", seconds=2 * HOUR)
        (late,) = system.queue("jane/one", "rv1", seconds=100)
        while (system.clock.now() - taken_at).total_seconds() < HOUR:
            await system.step(120)
        before = await system.statuses()
        assert before == {"completed": 3, "running": 3, "pending": 1}
        await dump.restore()
        assert await system.statuses() == {"running": 3, "pending": 1}
        await lose_leadership(system)
        assert await system.statuses() == before
        assert await status_of(system, ending) == ("completed", "webhook")
        assert await status_of(system, short) == ("completed", "webhook")
        assert await status_of(system, lasting) == ("running", "webhook")
        assert await status_of(system, waiting) == ("running", "webhook")
        assert await status_of(system, over) == ("completed", "pull")
        assert await status_of(system, begun) == ("running", "pull")
        assert await status_of(system, late) == ("pending", "pull")
        adopted = await system.rows("SELECT worker FROM events WHERE kind = 'worker.adopted'")
        bound = await system.rows(
            "SELECT runner_name FROM jobs WHERE job_id = ANY(%(ids)s)", ids=[waiting, begun]
        )
        assert {row["worker"] for row in adopted} == {row["runner_name"] for row in bound}
        await step_until(system, all_completed(system, 7), 120)
        assert lost_jobs(system) == []
        assert jit_calls(system) == 7  # nobody got a second runner
        killed = await system.rows("SELECT 1 FROM events WHERE kind IN ('worker.ending', 'worker.failed')")
        assert killed == []


@pytest.mark.parametrize("traffic", [False, True], ids=["in silence", "under traffic"])
async def test_a_database_restored_in_place_under_a_leader_that_notices_nothing_else(
    traffic: bool, database_url: str, tmp_path: Path
) -> None:
    """The dump holds the epoch that leads, and no connection breaks."""
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 4}) as system:
        (lasting,) = system.queue("acme/widgets", "rv1", seconds=3 * HOUR)
        await system.turn()
        await system.step(10)
        dump, taken_at = Dump(system), system.clock.now()
        await dump.take()
        (over,) = system.queue("acme/widgets", "rv1", seconds=100)
        (begun,) = system.queue("acme/widgets", "rv1", seconds=2 * HOUR)
        while (system.clock.now() - taken_at).total_seconds() < HOUR:
            await system.step(120)
        before = await system.statuses()
        assert before == {"completed": 1, "running": 2}
        term = await system.rows("SELECT epoch FROM leader")
        await dump.restore()
        (late,) = system.queue("acme/widgets", "rv1", seconds=HOUR) if traffic else (None,)
        await system.step(60)
        await system.step(15)
        assert await system.rows("SELECT epoch FROM leader") == term
        assert await status_of(system, lasting) == ("running", "webhook")
        assert await status_of(system, over) == ("completed", "pull")
        assert await status_of(system, begun) == ("running", "pull")
        if late is not None:
            assert await status_of(system, late) == ("running", "webhook")
        await step_until(system, all_completed(system, 4 if traffic else 3), 120)
        assert lost_jobs(system) == []
