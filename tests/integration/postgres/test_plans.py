"""With 1,000,000 finished jobs every statement of the loop, of the receiver and of the pages reads along an index.

The statements are found, not listed: whatever constant of a store is SQL is explained here, with a value for each
of its parameters. Those of the pages are explained with the values that people ask for, and none may be left out.
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
from psycopg.types.json import Jsonb

from controller.domain.charts import Span
from controller.domain.jobs import JobStatus
from controller.domain.pages import JobFilter, Slice
from controller.gateways import postgres
from controller.gateways.postgres import job_history, page_charts
from controller.gateways.postgres.breakers import (
    LOOKED_BACK,
    LOOKED_BACK_ON_BOARD,
    NEWEST,
    REFUSED,
    SUSPECT,
    BreakerStore,
)
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.job_history import section_values
from controller.gateways.postgres.pages import PageStore
from tests.integration.postgres.large import LARGE, LAST, a_large_database
from tests.integration.postgres.page_statements import page_statements
from tests.postgres import Databases

pytestmark = pytest.mark.timeout(300)  # a million rows take their time on a busy machine
PAGES = ("pages", "job_history", "page_charts", "page_turns", "schedule_reads")
ELSEWHERE = {*PAGES, "tallies", "migrate"}  # those of the pages have a list; the others run once
STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
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
    """Every SQL statement that is a constant of a store of the loop or the receiver, or of its module."""
    for found in pkgutil.iter_modules(postgres.__path__):
        if found.name not in ELSEWHERE:
            yield from statements_of(found.name)


def statements_of(name: str) -> Iterator[tuple[str, str]]:
    """Those of one module."""
    module = importlib.import_module(f"{postgres.__name__}.{name}")
    stores = [each for _, each in inspect.getmembers(module, inspect.isclass)]
    places: list[Any] = [module, *(each for each in stores if each.__module__ == module.__name__)]
    for place in places:
        for constant, text in vars(place).items():
            if constant.replace("_", "").isupper() and isinstance(text, str) and STATEMENT.match(text):
                yield f"{place.__name__.rpartition('.')[2]}.{constant}", text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full(databases: Databases) -> AsyncIterator[Database]:
    """A database with a million finished jobs."""
    async with a_large_database(databases) as database:
        yield database


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def explained(connection: Connection, text: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes of a statement's plan."""
    cursor = await connection.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), values, prepare=False)
    row = await cursor.fetchone()
    assert row is not None
    return list(nodes(row["QUERY PLAN"][0]["Plan"]))


def scans(plan: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Which tables a plan reads, and how."""
    return {(node["Node Type"], node["Relation Name"]) for node in plan if "Relation Name" in node}


TYPES = "SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'probe'"


async def values_for(connection: Connection, text: str) -> dict[str, Any]:
    """A value for each parameter; PostgreSQL itself says of which type it is."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))

    def number(found: re.Match[str]) -> str:
        moment = found[1] == "now" or found[1].endswith("_at")  # in COALESCE nothing says that it is one
        said = found[2] or ("::timestamptz" if moment else "")
        return f"${names.index(found[1]) + 1}{said}"

    numbered = re.sub(r"%\((\w+)\)s(::)?", number, text).replace("%%", "%")
    await connection.execute(f"PREPARE probe AS {numbered}".encode())
    row = await (await connection.execute(TYPES)).fetchone()
    await connection.execute("DEALLOCATE probe")
    assert row is not None
    return {name: BY_NAME.get(name, BY_TYPE[kind]) for name, kind in zip(names, row["types"], strict=True)}


async def read_by(connection: Connection, text: str) -> set[tuple[str, str]]:
    return scans(await explained(connection, text, await values_for(connection, text)))


@pytest.mark.asyncio(loop_scope="module")
async def test_no_statement_of_loop_or_receiver_scans_a_large_table(full: Database) -> None:
    tables: set[str] = set()
    async with full.transaction() as connection:
        for name, text in statements():
            read = await read_by(connection, text)
            tables |= {table for _, table in read}
            for table in LARGE:
                assert ("Seq Scan", table) not in read, name
    assert tables >= set(LARGE)


@pytest.mark.asyncio(loop_scope="module")
async def test_no_page_scans_a_large_table(full: Database) -> None:
    tables: set[str] = set()
    async with full.transaction() as connection:
        for name, text, values in page_statements():
            read = scans(await explained(connection, text, values))
            assert read, name
            tables |= {table for _, table in read}
            for table in LARGE:
                whole = (
                    name == f"pools of {Span.WEEK.value}" and table == "board_snapshots"
                )  # no more are kept here
                assert whole or ("Seq Scan", table) not in read, name
    assert tables >= set(LARGE)


def test_no_statement_of_the_pages_is_forgotten() -> None:
    asked = [text for _, text, _ in page_statements()]
    found = {name: text for module in PAGES for name, text in statements_of(module)}
    assert len(found) >= 25
    parts = [name for name, text in found.items() if not any(text in whole for whole in asked)]
    assert parts == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("status", list(JobStatus))
async def test_the_jobs_of_a_pool_have_an_index_of_their_own_however_few_they_are(
    full: Database, status: JobStatus
) -> None:
    values = section_values(JobFilter(pool="a pool of nobody"), status, None, 0, 101)
    async with full.transaction() as connection:
        plan = await explained(connection, job_history.NEWEST_FIRST, values)
    assert {node.get("Index Name") for node in plan} >= {"jobs_by_pool"}


@pytest.mark.asyncio(loop_scope="module")
async def test_the_deepest_page_skips_along_the_index_alone(full: Database) -> None:
    values = section_values(JobFilter(), JobStatus.COMPLETED, None, 99_900, 101)
    async with full.transaction() as connection:
        read = scans(await explained(connection, job_history.NEWEST_FIRST, values))
    assert ("Index Only Scan", "jobs") in read


@pytest.mark.asyncio(loop_scope="module")
async def test_a_weeks_waits_are_read_from_the_index_alone(full: Database) -> None:
    values = {"start": Span.WEEK.start(LAST), "now": LAST, "seconds": 7200}
    async with full.transaction() as connection:
        read = scans(await explained(connection, page_charts.WAITS, values))
    assert read == {("Index Only Scan", "jobs")}


@pytest.mark.asyncio(loop_scope="module")
async def test_the_deepest_page_has_the_right_jobs(full: Database) -> None:
    deepest = await PageStore(full).history(JobFilter(), Slice(1000, 100))
    async with full.transaction() as connection:
        cursor = await connection.execute("""
            SELECT job_id FROM jobs ORDER BY array_position(ARRAY['pending', 'running', 'failed', 'completed'], status),
                CASE WHEN status = 'pending' THEN created_at END, created_at DESC OFFSET 99900 LIMIT 100
        """)
        expected = [row["job_id"] for row in await cursor.fetchall()]
    assert [job.job_id for job in deepest.rows] == expected
    assert deepest.more


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
