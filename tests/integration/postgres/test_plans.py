"""With 1,000,000 finished jobs every statement of the loop and of the receiver reads along an index.

The statements are found, not listed: whatever constant of a store is SQL is explained here, with a value for each
of its parameters. Pages have a test of their own.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from psycopg import sql
from psycopg.types.json import Jsonb

from controller.gateways import postgres
from controller.gateways.postgres.breakers import (
    LOOKED_BACK,
    LOOKED_BACK_ON_BOARD,
    NEWEST,
    REFUSED,
    SUSPECT,
    BreakerStore,
)
from controller.gateways.postgres.database import Connection, Database
from tests.clocks import EPOCH
from tests.postgres import Databases, opened

pytestmark = pytest.mark.timeout(300)  # a million rows take their time on a busy machine
ELSEWHERE = {"pages", "job_history", "tallies", "migrate"}  # pages have their own test; the others run once
STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
LARGE = ("jobs", "workers", "events")
JOBS = 1_000_000
ROWS = {
    "jobs": f"""
    INSERT INTO jobs (job_id, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, run_id,
        status, runner_name, heard_at, poll_at, created_at, seen_at, started_at, completed_at, updated_at)
    SELECT n, n % 50, 'org-' || n % 50, 'Organization', 'org/repo', '111', n % 50, '{{ubuntu-24.04-riscv}}', n / 3,
        CASE WHEN n > {JOBS} THEN (ARRAY['pending', 'running'])[1 + n % 2] WHEN n % 100 = 2 THEN 'failed'
             ELSE 'completed' END, CASE WHEN n % 2 = 0 AND n > {JOBS} THEN NULL ELSE 'w-' || n END,
        t, t, t, t, t, t, t
    FROM generate_series(1, {JOBS} + 100) n, LATERAL (SELECT timestamptz '2026-01-01' + n * interval '5 s' AS t) at
    """,
    "workers": f"""
    INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image,
        made_for, status, pod_at, pod_ended_at, created_at, completed_at, updated_at)
    SELECT 'w-' || n, n % 50, 'org', 'Organization', '111', n % 50, '{{ubuntu-24.04-riscv}}', 'p', 'i', n,
        CASE WHEN n > {JOBS} THEN 'running' ELSE 'completed' END, t, CASE WHEN n <= {JOBS} THEN t END, t, t, t
    FROM generate_series({JOBS} - 200000, {JOBS} + 100) n,
        LATERAL (SELECT timestamptz '2026-01-01' + n * interval '5 s' AS t) at
    """,
    "events": f"""
    INSERT INTO events (at, source, kind, delivery, job_id, installation_id, app_id)
    SELECT t, 'webhook', CASE WHEN n % 10000 = 0 THEN 'installation.created' ELSE 'workflow_job.queued' END,
        'guid-' || n, n, n % 50, '111'
    FROM generate_series({JOBS} - 200000, {JOBS}) n,
        LATERAL (SELECT timestamptz '2026-01-01' + n * interval '5 s' AS t) at
    """,
}
INDEXES = """
SELECT indexname AS name, indexdef AS definition FROM pg_indexes
WHERE tablename = %(table)s AND indexname <> tablename || '_pkey'
"""
LAST = EPOCH.replace(month=1, day=1, hour=0) + timedelta(seconds=5 * JOBS)
BY_NAME: dict[str, Any] = {
    "since": LAST - timedelta(hours=6),
    "before": LAST - timedelta(days=50),
    "labels": ["ubuntu-24.04-riscv"],
    "app_id": "an App without a delivery",
}
BY_TYPE: dict[str, Any] = {
    "bigint": 7,
    "integer": 1,
    "numeric": 1,
    "double precision": 1.0,
    "text": "w-7",
    "boolean": True,
    "timestamp with time zone": LAST,
    "interval": timedelta(minutes=1),
    "jsonb": Jsonb({}),
    "text[]": ["w-7", "w-8"],
    "bigint[]": [7, 8],
    "integer[]": [7, 8],
    "boolean[]": [True, False],
    "timestamp with time zone[]": [LAST, LAST],
}


def statements() -> Iterator[tuple[str, str]]:
    """Every SQL statement that is a constant of a store or its module."""
    for found in pkgutil.iter_modules(postgres.__path__):
        if found.name in ELSEWHERE:
            continue
        module = importlib.import_module(f"{postgres.__name__}.{found.name}")
        stores = [each for _, each in inspect.getmembers(module, inspect.isclass)]
        places: list[Any] = [module, *(each for each in stores if each.__module__ == module.__name__)]
        for place in places:
            for name, text in vars(place).items():
                if name.replace("_", "").isupper() and isinstance(text, str) and STATEMENT.match(text):
                    yield f"{place.__name__.rpartition('.')[2]}.{name}", text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full(databases: Databases) -> AsyncIterator[Database]:
    """A database with a million finished jobs; the indexes are made after the rows, which is faster."""
    url = await databases.migrated()
    async with opened(url) as database:
        connection = await database.connect()
        async with connection:
            for table in LARGE:
                await _fill(connection, table)
            await connection.set_autocommit(True)
            await connection.execute("VACUUM ANALYZE")
        yield database
    await databases.drop(url)


async def _fill(connection: Connection, table: str) -> None:
    async with connection.transaction():
        indexes = await (await connection.execute(INDEXES, {"table": table})).fetchall()
        for index in indexes:
            await connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(index["name"])))
        await connection.execute(ROWS[table].encode())
        for index in indexes:
            await connection.execute(index["definition"].encode())


def scans(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Which tables a plan reads, and how."""
    if "Relation Name" in plan:
        yield plan["Node Type"], plan["Relation Name"]
    for child in plan.get("Plans", ()):
        yield from scans(child)


TYPES = "SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'probe'"


async def values_for(connection: Connection, text: str) -> dict[str, Any]:
    """A value for each parameter; PostgreSQL itself says of which type it is."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))

    def number(found: re.Match[str]) -> str:
        moment = found[1] == "now" or found[1].endswith("_at")  # in COALESCE nothing says that it is one
        return f"${names.index(found[1]) + 1}" + ("::timestamptz" if moment else "")

    numbered = re.sub(r"%\((\w+)\)s", number, text).replace("%%", "%")
    await connection.execute(f"PREPARE probe AS {numbered}".encode())
    row = await (await connection.execute(TYPES)).fetchone()
    await connection.execute("DEALLOCATE probe")
    assert row is not None
    return {name: BY_NAME.get(name, BY_TYPE[kind]) for name, kind in zip(names, row["types"], strict=True)}


async def read_by(connection: Connection, text: str) -> set[tuple[str, str]]:
    values = await values_for(connection, text)
    cursor = await connection.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), values, prepare=False)
    row = await cursor.fetchone()
    assert row is not None
    return set(scans(row["QUERY PLAN"][0]["Plan"]))


@pytest.mark.asyncio(loop_scope="module")
async def test_no_statement_of_loop_or_receiver_scans_a_large_table(full: Database) -> None:
    explained: set[str] = set()
    async with full.transaction() as connection:
        for name, text in statements():
            read = await read_by(connection, text)
            explained |= {table for _, table in read}
            for table in LARGE:
                assert ("Seq Scan", table) not in read, name
    assert explained >= set(LARGE)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_statement_that_does_scan_would_be_noticed(full: Database) -> None:
    async with full.transaction() as connection:
        read = await read_by(connection, "SELECT 1 FROM jobs WHERE last_failure = %(reason)s")
    assert {table for how, table in read if "Seq Scan" in how} == {"jobs"}


FAILURES = """
INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image, node,
    status, failure_reason, pod_at, pod_ended_at, created_at, completed_at, updated_at)
SELECT 'bad-' || n, 1, 'org', 'Organization', '111', 1, '{x}', 'p', 'i', 'board-' || n %% 500,
    CASE WHEN n < 1000 THEN 'failed' ELSE 'completed' END, CASE WHEN n < 1000 THEN 'pod_failed' END, t, t, t, t, t
FROM generate_series(1, 60000) n, LATERAL (SELECT %(last)s - n * interval '0.3 s' AS t) at
"""


@pytest.mark.parametrize("image", ["i", "a new one"])
@pytest.mark.asyncio(loop_scope="module")
async def test_the_breaker_reads_no_more_of_a_large_fleet_than_it_judges_by(
    full: Database, image: str
) -> None:
    """500 boards with 120 jobs each in the last hours, and two failures on each."""
    connection = await full.connect()
    async with connection, connection.transaction(force_rollback=True):
        await connection.execute(FAILURES, {"last": LAST})
        await connection.execute("ANALYZE workers")
        values = {"since": LAST - timedelta(hours=6), "pools": ["p", "q"], "images": [image, "i"]}
        values |= {"suspect": SUSPECT, "refused": REFUSED, "newest": NEWEST}
        values |= {"looked_back": LOOKED_BACK, "of_board": LOOKED_BACK_ON_BOARD}
        query = f"EXPLAIN (ANALYZE, FORMAT JSON) {BreakerStore.ENDINGS}".encode()
        row = await (await connection.execute(query, values, prepare=False)).fetchone()
    assert row is not None
    assert (
        sum(rows_read(row["QUERY PLAN"][0]["Plan"]))
        < 999 + 500 * (2 + LOOKED_BACK_ON_BOARD) + LOOKED_BACK + 300
    )


def rows_read(plan: dict[str, Any]) -> Iterator[int]:
    """How many rows of large tables a plan looked at, those that it passed over included."""
    if plan.get("Relation Name") in LARGE:
        seen = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        yield int(seen * plan["Actual Loops"])
    for child in plan.get("Plans", ()):
        yield from rows_read(child)


def test_the_statements_are_found() -> None:
    found = dict(statements())
    assert len(found) >= 40
    for expected in ("JobStore.DUE", "WorkerStore.RESERVE", "BreakerStore.ENDINGS", "Intake.COMPLETE"):
        assert expected in found
