"""The embedded PostgreSQL: it comes up, outlives a crash, and ends with its block."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from controller.errors import ConfigError
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.migrate import ping
from controller.ports import Secret
from controller.simulators.postgres import EmbeddedPostgres, embedded_postgres
from tests.processes import descendants
from tests.waiting import until

OWNER = """
import asyncio, pathlib, sys
from controller.simulators.postgres import embedded_postgres
async def own():
    async with embedded_postgres(pathlib.Path(sys.argv[1])):
        print("up", flush=True)
        await asyncio.Event().wait()
asyncio.run(own())
"""
LEAST = 2  # the server, and what it started


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="switchboard-pg-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


async def one(url: str, query: str) -> object:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        row = await (await connection.execute(query.encode())).fetchone()
        return row[0] if row else None


async def test_what_was_committed_is_still_there_in_the_next_run_of_the_same_directory(
    directory: Path,
) -> None:
    async with embedded_postgres(directory) as url:
        await one(url, "SELECT 1")
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute("CREATE TABLE kept AS SELECT 42 AS value")
    async with embedded_postgres(directory) as url:
        assert await one(url, "SELECT value FROM kept") == 42


async def test_a_commit_outlives_a_crash_and_the_address_stays(own_postgres: EmbeddedPostgres) -> None:
    url = own_postgres.url()
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("CREATE TABLE kept AS SELECT 42 AS value")
    own_postgres.kill()
    own_postgres.start()
    assert await one(url, "SELECT value FROM kept") == 42


async def test_the_server_ends_with_its_block(directory: Path) -> None:
    server = EmbeddedPostgres(directory)
    server.start()
    pid = server.pid
    assert pid is not None
    await ping(Database(Secret(server.url()), "switchboard", 2))
    server.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its owner has died")
async def test_the_server_ends_when_its_owner_is_killed(directory: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(directory)]
    owner = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert owner.stdout is not None
    await owner.stdout.readline()
    server = descendants(owner.pid)
    assert len(server) >= LEAST
    owner.kill()
    await owner.wait()

    async def gone() -> bool:
        return not any(process.alive for process in server)

    await until(gone)


def test_a_directory_too_long_for_a_socket_is_refused(directory: Path) -> None:
    with pytest.raises(ConfigError, match="too long"):
        EmbeddedPostgres(directory / ("x" * 90)).start()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the directory to another user")
def test_a_directory_that_the_servers_user_cannot_reach_is_refused_with_its_name(
    directory: Path,
) -> None:
    directory.chmod(0o700)
    with pytest.raises(ConfigError, match="cannot pass"):
        EmbeddedPostgres(directory / "below").start()


async def test_every_test_has_tables_of_its_own(database: Database) -> None:
    async with database.transaction() as connection:
        row = await (await connection.execute("SELECT count(*) AS jobs FROM jobs")).fetchone()
    assert row == {"jobs": 0}
