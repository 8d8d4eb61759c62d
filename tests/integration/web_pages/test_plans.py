"""With many finished jobs and workers every page reads along an index; a plan that scans the table fails here."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controller.domain.charts import Span
from controller.domain.jobs import JobStatus
from controller.domain.pages import JobFilter, Slice, Window
from controller.gateways.postgres import job_history, page_charts, page_turns
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.job_history import section_values
from controller.gateways.postgres.pages import PageStore, slice_values
from controller.gateways.postgres.schedule_reads import ScheduleReads
from tests.integration.web_pages.seeding import ago

# The sizes of a large installation take minutes: SWITCHBOARD_LARGE=1 asks for them.
JOBS, WORKERS = (1_000_000, 200_000) if os.environ.get("SWITCHBOARD_LARGE") else (200_000, 50_000)
EVENTS, OCCURRENCES = JOBS // 2, WORKERS
JOB_EVERY, WORKER_EVERY = 4_000_000 // JOBS, 4_000_000 // WORKERS  # seconds: all of it within 46 days
LAST = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(
    seconds=JOBS * JOB_EVERY
)  # when the newest job was queued
pytestmark = pytest.mark.timeout(900 if os.environ.get("SWITCHBOARD_LARGE") else 300)
MANY_JOBS = f"""
INSERT INTO jobs (job_id, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, run_id, status,
    pool, runner_name, heard_at, poll_at, created_at, seen_at, started_at, completed_at, updated_at)
SELECT n, n % 50, 'org-' || n % 50, 'Organization', 'org/Repo-' || n % 500, '1', 1,
    CASE WHEN n % 5000 = 0 THEN ARRAY['rare', 'ubuntu-24.04-riscv'] ELSE ARRAY['ubuntu-24.04-riscv'] END, n / 3,
    CASE WHEN n % 20000 = 0 THEN 'pending' WHEN n % 20000 = 1 THEN 'running' WHEN n % 100 = 2 THEN 'failed'
         ELSE 'completed' END, 'p', 'w-' || n, t, t, t, t, t, t, t
FROM generate_series(1, {JOBS}) n,
    LATERAL (SELECT timestamptz '2026-01-01' + n * interval '{JOB_EVERY} s' AS t) at
"""
MANY_EVENTS = f"""
INSERT INTO events (at, source, kind, job_id, worker)
SELECT timestamptz '2026-01-01' + n * interval '1 s', 'webhook', 'k', n % {JOBS // 20}, 'w-' || n % {WORKERS // 20}
FROM generate_series(1, {EVENTS}) n
"""
MANY_OCCURRENCES = f"""
INSERT INTO occurrences (schedule, due_at, action, status, created_at)
SELECT 's-' || n % 20, t, 'pause',
    CASE WHEN n % 10000 = 0 THEN 'pending' WHEN n % 50 = 1 THEN 'failed' ELSE 'completed' END, t
FROM generate_series(1, {OCCURRENCES}) n,
    LATERAL (SELECT timestamptz '2026-01-01' + n * interval '{WORKER_EVERY} s' AS t) at
"""
MANY_WORKERS = f"""
INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image, made_for,
    node, status, created_at, pod_at, pod_ended_at, completed_at, updated_at)
SELECT 'w-' || n, n % 50, 'org', 'Organization', '1', 1, '{{ubuntu-24.04-riscv}}', 'p-' || n % 10, 'i', n,
    'node-' || n % 100,
    CASE WHEN n % 10000 = 0 THEN 'running' WHEN n % 100 = 2 THEN 'failed' ELSE 'completed' END, t, t,
    CASE WHEN n % 10000 <> 0 THEN t + interval '10 min' END, t, t
FROM generate_series(1, {WORKERS}) n,
    LATERAL (SELECT timestamptz '2026-01-01' + n * interval '{WORKER_EVERY} s' AS t) at
"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def scans(connection: Connection, query: str, values: dict[str, Any]) -> set[tuple[str, str]]:
    """Which tables the statement reads, and how."""
    row = await (await connection.execute(f"EXPLAIN (FORMAT JSON) {query}", values, prepare=False)).fetchone()
    assert row is not None
    found = nodes(row["QUERY PLAN"][0]["Plan"])
    return {(node["Node Type"], node["Relation Name"]) for node in found if "Relation Name" in node}


@pytest.fixture
async def full(database: Database) -> Database:
    """A database with many finished jobs and workers, analysed."""
    connection = await database.connect()  # outside the pool, whose transactions may not take this long
    async with connection:
        for rows in (MANY_JOBS, MANY_WORKERS, MANY_EVENTS, MANY_OCCURRENCES):
            await connection.execute(rows.encode())
        await connection.execute("VACUUM (ANALYZE) jobs, workers, events, occurrences")
    return database


def history_statements() -> Iterator[tuple[str, str, dict[str, Any]]]:
    week = Window(start=ago(days=7))
    filters = {
        "all": (JobFilter(), None),
        "a week": (JobFilter(window=week), None),
        "an entity": (JobFilter(entity="7"), [7]),
        "an entity's week": (JobFilter(entity="7", window=week), [7]),
        "a run": (JobFilter(run_id=4711), None),
        "a repository": (JobFilter(repo="ORG/repo-7"), None),
        "a label": (JobFilter(label="rare"), None),
        "a common label": (JobFilter(label="ubuntu-24.04-riscv"), None),
        "a label of nobody": (JobFilter(label="none"), None),
    }
    for name, (wanted, entities) in filters.items():
        for status in JobStatus:
            for offset in (0, 99_900):
                values = section_values(wanted, status, entities, offset, 101)
                query = job_history.OLDEST_FIRST if status is JobStatus.PENDING else job_history.NEWEST_FIRST
                yield f"{name}, {status.value}, from {offset}", query, values
            yield f"count of {name}, {status.value}", job_history.COUNT, values
    for status in JobStatus:
        values = section_values(JobFilter(text="repo-77"), status, None, 0, 101)
        oldest = status is JobStatus.PENDING
        query = job_history.OLDEST_WITH_TEXT if oldest else job_history.NEWEST_WITH_TEXT
        yield f"text, {status.value}", query, values
        yield f"count of text, {status.value}", job_history.COUNT_WITH_TEXT, {**values, "offset": 900}
    yield "entities", job_history.ENTITIES_NAMED, {"name": "org-7"}


def other_statements() -> Iterator[tuple[str, str, dict[str, Any]]]:
    part = slice_values(Window(), Slice())
    today = {"today": ago(hours=12), "horizon": ago(days=40), "limit": 8, "harmless": ["runner_idle"]}
    today |= {"lately": LAST - timedelta(minutes=30), "before": LAST - timedelta(hours=1)}
    job = {"job_id": 7, "runner_name": "w-7", "limit": 20}
    yield "usage", PageStore.USAGE, part
    every = {"statuses": None, "pool": None, "node": None, "failed_since": None, "harmless": ["runner_idle"]}
    yield "workers", PageStore.WORKERS, {**part, **every}
    yield "failed workers", PageStore.WORKERS, {**part, **every, "statuses": ["failed"]}
    yield "workers of a pool", PageStore.WORKERS, {**part, **every, "pool": "p-7"}
    yield "workers of a board", PageStore.WORKERS, {**part, **every, "node": "node-7"}
    failed = {**part, **every, "statuses": ["failed"]}
    yield "failed workers of a board", PageStore.WORKERS, {**failed, "node": "node-7"}
    yield "failed workers of no board", PageStore.WORKERS, {**failed, "node": "none"}
    yield (
        "workers that failed today",
        PageStore.WORKERS,
        {**part, **every, "failed_since": LAST - timedelta(hours=9)},
    )
    yield "events of a job", PageStore.JOB_EVENTS, {"job_id": 7, "limit": 200}
    yield "events of a worker", PageStore.WORKER_EVENTS, {"name": "w-7", "limit": 200}
    yield "last page of workers", PageStore.WORKERS, {**part, **every, "offset": 49_900}
    turn = {"created_at": LAST, "job_id": 7, "pools": ["p-7", "p-8"], "board": "b", "limit": 100}
    yield "queue of a board type", page_turns.QUEUE, turn
    yield "pace of a board type", page_turns.PACE, turn
    yield "queue by reason", PageStore.QUEUE, {}
    for span in Span:
        values = {"start": span.start(LAST), "now": LAST, "seconds": int(span.bucket.total_seconds())}
        values |= {"harmless": ["runner_idle"]}
        yield f"waits of {span.value}", page_charts.WAITS, values
        yield f"failures of {span.value}", page_charts.FAILURES, values
    day = {
        "start": Span.DAY.start(LAST),
        "now": LAST,
        "seconds": 900,
        "width": Span.DAY.bucket,
        "buckets": 96,
    }
    day |= {"nodes": [f"node-{n}" for n in range(100)], "harmless": ["runner_idle"]}
    yield "days of boards", page_charts.TAKEN, day
    yield "endings on boards", page_charts.ENDED, day
    yield "boards", PageStore.BOARDS, part
    yield "counts", PageStore.COUNTS, today
    yield "waiting", PageStore.WAITING, today
    yield "failures", PageStore.FAILURES, today
    yield "job", PageStore.JOB, job
    yield "workers of a job", PageStore.JOB_WORKERS, job
    yield "worker", PageStore.WORKER, {"name": "w-7"}
    yield "known", PageStore.KNOWN, {"number": 7, "sees_private": False}


def schedule_statements() -> Iterator[tuple[str, str, dict[str, Any]]]:
    whole = {**slice_values(Window(), Slice()), "ahead": timedelta(days=1)}
    week = {**whole, "start": LAST - timedelta(days=7)}
    yield "newest occurrence of each schedule", ScheduleReads.LAST, {"names": [f"s-{n}" for n in range(20)]}
    yield "occurrences", ScheduleReads.NEWEST, whole
    yield "a week's occurrences", ScheduleReads.NEWEST, week
    yield "last page of occurrences", ScheduleReads.NEWEST, {**whole, "offset": OCCURRENCES - 100}
    yield "waiting occurrences", ScheduleReads.WAITING, {"since": LAST - timedelta(days=7), "limit": 50}


async def test_no_page_scans_jobs_or_workers(full: Database) -> None:
    async with full.transaction() as connection:
        for name, query, values in (*history_statements(), *other_statements(), *schedule_statements()):
            read = await scans(connection, query, values)
            assert read, name
            for table in ("jobs", "workers", "events", "occurrences"):
                assert ("Seq Scan", table) not in read, name


async def test_the_deepest_page_skips_along_the_index_alone(full: Database) -> None:
    async with full.transaction() as connection:
        values = section_values(JobFilter(), JobStatus.COMPLETED, None, 99_900, 101)
        read = await scans(connection, job_history.NEWEST_FIRST, values)
    assert ("Index Only Scan", "jobs") in read


async def test_a_weeks_waits_are_read_from_the_index_alone(full: Database) -> None:
    values = {"start": Span.WEEK.start(LAST), "now": LAST, "seconds": 7200}
    async with full.transaction() as connection:
        assert await scans(connection, page_charts.WAITS, values) == {("Index Only Scan", "jobs")}


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
