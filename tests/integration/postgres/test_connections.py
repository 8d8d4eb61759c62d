"""The pool of connections when the database has gone away and come back."""

import asyncio

from controller.gateways.postgres.database import CHECK_SECONDS, Database
from tests.postgres import CONNECTIONS, opened

CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def test_a_database_that_restarted_is_spoken_to_at_once_though_every_connection_died(
    database: Database, database_url: str
) -> None:
    together = asyncio.Barrier(CONNECTIONS)

    async def hold_one() -> None:
        async with database.transaction():
            await together.wait()

    await asyncio.gather(*(hold_one() for _ in range(CONNECTIONS)))
    await asyncio.sleep(CHECK_SECONDS)
    async with opened(database_url) as other:
        await other.fetch(CUT_OFF)
    assert await database.fetch("SELECT 1 AS one") == [{"one": 1}]
