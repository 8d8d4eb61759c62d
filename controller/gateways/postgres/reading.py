"""The transactions of pages: read-only, of one snapshot, and cut off after 5 s, so that none waits for ever."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controller.gateways.postgres.database import Connection, Database

BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = '5s'"


@asynccontextmanager
async def reading(database: Database) -> AsyncIterator[Connection]:
    """One such transaction on a connection of the pages' own pool."""
    async with database.transaction() as connection:
        await connection.execute(BEGIN)
        yield connection
