"""Real PostgreSQL for tests: one server per session, a fresh migrated database per test."""

import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from controller.gateways.postgres.database import Database
from controller.gateways.postgres.migrate import migrate
from controller.ports import Secret
from controller.simulators.postgres import EmbeddedPostgres
from tests.clocks import EPOCH

SCHEMA = "switchboard"
TEMPLATE = "switchboard_template"
CONNECTIONS = 6
MEMORY = Path("/dev/shm")  # noqa: S108 -- a directory of our own is made below it
ROOM = 4 * 2**30


@contextmanager
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """A server of one's own, for tests that stop, kill or restart it."""
    # Not below pytest's own directories: those are closed to the user who runs PostgreSQL when we are root.
    directory = Path(tempfile.mkdtemp(prefix="switchboard-pg-", dir=_quick_place()))
    server = EmbeddedPostgres(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _quick_place() -> Path | None:
    """Memory, if there is plenty: a database is thousands of small files, made there in a seventh of the time."""
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    return MEMORY if roomy else None


class Databases:
    """Makes databases on one server: empty ones, and copies of a migrated template."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._numbers = itertools.count(1)
        self._has_template = False

    async def empty(self) -> str:
        """The URL of a new database without any table."""
        return await self._create("template0")

    async def migrated(self) -> str:
        """The URL of a new database with all migrations applied."""
        if not self._has_template:
            await self._make_template()
        return await self._create(TEMPLATE)

    async def drop(self, url: str) -> None:
        """Remove a database, cutting off whoever is still connected."""
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        await self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(str(name))))

    async def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        await self._run(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
        return self._server.url(name)

    async def _make_template(self) -> None:
        await self._run(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        await migrate(Database(Secret(self._server.url(TEMPLATE)), SCHEMA, 2), EPOCH)
        self._has_template = True

    async def _run(self, statement: sql.Composed) -> None:
        connection = await psycopg.AsyncConnection.connect(self._server.url(), autocommit=True)
        async with connection:
            await connection.execute(statement)


@asynccontextmanager
async def opened(url: str, schema: str = SCHEMA, connections: int = CONNECTIONS) -> AsyncIterator[Database]:
    """An open Database on this URL: one per simulated process."""
    database = Database(Secret(url), schema, connections)
    await database.open()
    try:
        yield database
    finally:
        await database.close()
