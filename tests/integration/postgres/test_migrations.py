"""Migrations: twice, at once, and between releases."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from controller import __version__
from controller.errors import SchemaMismatch, StoreError, StoreUnavailable
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.migrate import (
    Migration,
    check_schema,
    migrate,
    migrations,
    ping,
    wait_for_database,
)
from controller.ports import Secret
from controller.simulators.postgres import EmbeddedPostgres
from tests.clocks import EPOCH, ManualClock
from tests.integration.postgres.queries import rows
from tests.postgres import SCHEMA, opened
from tests.waiting import until

ALL = [f"{step.version:04d}_{step.name}" for step in migrations()]
NEXT = Migration(9_001, "later", __version__, "CREATE TABLE later (id bigint PRIMARY KEY);")


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[Database]:
    async with opened(empty_database_url) as database:
        yield database


async def test_the_second_time_nothing_is_left_to_do(empty: Database) -> None:
    assert await migrate(empty, EPOCH) == ALL
    assert await migrate(empty, EPOCH) == []
    await check_schema(empty)


async def test_two_at_once_apply_each_step_once(empty: Database, empty_database_url: str) -> None:
    async with opened(empty_database_url) as other:
        done = await asyncio.gather(*(migrate(place, EPOCH) for place in (empty, other, empty, other)))
    assert sorted(done, key=len) == [[], [], [], ALL]
    assert len(await rows(empty, "SELECT version FROM migrations")) == len(ALL)


async def test_two_installations_share_a_database_in_schemas_of_their_own(
    empty: Database, empty_database_url: str
) -> None:
    await migrate(empty, EPOCH)
    async with opened(empty_database_url, schema="staging") as other:
        assert await migrate(other, EPOCH) == ALL
        assert other.channel != empty.channel


async def test_a_step_that_fails_leaves_nothing_of_its_release(empty: Database) -> None:
    broken = replace(NEXT, version=9_002, text="CREATE TABLE half (id bigint); SELECT no_such_function();")
    with pytest.raises(StoreError):
        await migrate(empty, EPOCH, (*migrations(), NEXT, broken))
    with pytest.raises(SchemaMismatch, match="empty"):
        await check_schema(empty)
    assert await migrate(empty, EPOCH) == ALL


async def test_an_empty_database_says_which_command_to_run(empty: Database) -> None:
    with pytest.raises(SchemaMismatch, match="switchboard migrate"):
        await check_schema(empty)


async def test_a_database_that_lacks_a_step_says_which(empty: Database) -> None:
    await migrate(empty, EPOCH)
    last = migrations()[-1].version
    async with empty.transaction() as connection:
        await connection.execute("DELETE FROM migrations WHERE version = %s", [last])
    with pytest.raises(SchemaMismatch, match=f"migration {last} is not applied"):
        await check_schema(empty)


async def test_one_release_back_works_on_a_newer_database(empty: Database) -> None:
    await migrate(empty, EPOCH, (*migrations(), NEXT))
    await check_schema(empty)
    assert await migrate(empty, EPOCH) == []


async def test_a_database_that_only_newer_programs_understand_is_refused(empty: Database) -> None:
    await migrate(empty, EPOCH, (*migrations(), replace(NEXT, serves="999.0.0")))
    with pytest.raises(SchemaMismatch, match=r"from 999\.0\.0 on"):
        await check_schema(empty)


async def test_versions_are_compared_as_numbers(empty: Database) -> None:
    await migrate(empty, EPOCH, (*migrations(), replace(NEXT, serves="0.9.0")))
    await check_schema(empty, "0.10.0")
    with pytest.raises(SchemaMismatch):
        await check_schema(empty, "0.8.9")


async def test_a_schema_made_by_an_administrator_needs_no_right_to_make_schemas(
    empty: Database, empty_database_url: str
) -> None:
    role = f"limited_{time.monotonic_ns()}"
    async with empty.transaction() as connection:
        await connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        await connection.execute(f"CREATE SCHEMA {SCHEMA} AUTHORIZATION {role}".encode())
    url = psycopg.conninfo.make_conninfo(empty_database_url, user=role)
    async with opened(url) as limited:
        assert await migrate(limited, EPOCH) == ALL


async def test_waiting_ends_when_the_database_comes_up(own_postgres: EmbeddedPostgres) -> None:
    own_postgres.stop()
    clock = ManualClock()
    database = Database(Secret(own_postgres.url()), SCHEMA, 2)
    with pytest.raises(StoreUnavailable):
        await ping(database)
    waiting = asyncio.create_task(wait_for_database(database, clock))

    async def tried() -> bool:
        return clock.next_due is not None

    await until(tried)
    await asyncio.to_thread(own_postgres.start)
    await clock.advance(timedelta(seconds=1))
    async with asyncio.timeout(30):
        await waiting


async def test_a_wrong_address_is_never_quoted() -> None:
    for url in ("postgres:/admin:hunter2@db/x", "postgresql://admin:hunter2@127.0.0.1:1/x"):
        with pytest.raises(StoreError) as raised:
            await ping(Database(Secret(url), SCHEMA, 2))
        assert "hunter2" not in str(raised.value)
        assert "127.0.0.1" not in str(raised.value)
