"""What the doctor asks the database."""

import asyncio

from controller import __version__
from controller.domain.checkup import DatabaseFacts
from controller.errors import SchemaMismatch
from controller.gateways.postgres.database import Connection, Database, identifier, store_errors
from controller.gateways.postgres.migrate import require_schema

ARRIVES_WITHIN_SECONDS = 2.0
VERSION = "SELECT current_setting('server_version_num')::integer AS version"
SEARCH_PATH = "SELECT current_setting('search_path') AS search_path"
BACKEND = "SELECT pg_backend_pid() AS pid"
RING = "SELECT pg_notify(%(channel)s, '')"


async def examine(database: Database) -> DatabaseFacts:
    """The facts; StoreUnavailable if the database does not answer."""
    one, other = await database.connect(), await database.connect()
    try:
        with store_errors():
            row = await (await one.execute(VERSION)).fetchone()
            pooled = not await _keeps_settings(one, database.schema) or await _share_a_backend(one, other)
            pooled = pooled or not await _hears(one, other, database.schema)
            fault = None if pooled else await _schema_fault(one, database.schema)
    finally:
        await one.close()
        await other.close()
    return DatabaseFacts(row["version"] if row else 0, fault, pooled)


async def _keeps_settings(one: Connection, schema: str) -> bool:
    """Whether what a session was opened with holds in it; poolers are often told to drop it."""
    row = await (await one.execute(SEARCH_PATH)).fetchone()
    return row is not None and row["search_path"] == schema


async def _share_a_backend(one: Connection, other: Connection) -> bool:
    """A pooler in transaction mode hands the backend of an idle session to the next transaction."""
    before = await (await one.execute(BACKEND)).fetchone()
    async with other.transaction():
        between = await (await other.execute(BACKEND)).fetchone()
        after = await (await one.execute(BACKEND)).fetchone()
    return between == before or after != before


async def _hears(one: Connection, other: Connection, schema: str) -> bool:
    """Whether a notification reaches a session that listens."""
    channel = f"{schema}_doctor"
    await one.execute(b"LISTEN " + identifier(channel).as_bytes(one))
    await other.execute(RING, {"channel": channel})
    async with asyncio.timeout(ARRIVES_WITHIN_SECONDS * 2):
        async for _ in one.notifies(timeout=ARRIVES_WITHIN_SECONDS, stop_after=1):
            return True
    return False


async def _schema_fault(connection: Connection, schema: str) -> str | None:
    try:
        await require_schema(connection, schema, __version__)
    except SchemaMismatch as fault:
        return str(fault)
    return None
