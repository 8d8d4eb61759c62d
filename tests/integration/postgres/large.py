"""A database as large as an old installation's: a million finished jobs, and a full house at the end of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from psycopg import sql

from controller.gateways.postgres.database import Connection, Database
from tests.clocks import EPOCH
from tests.postgres import Databases, opened

LARGE = ("jobs", "workers", "events", "occurrences", "board_snapshots")
JOBS, WAITING, LIVE = 1_000_000, 2_000, 100
LAST = EPOCH.replace(month=1, day=1, hour=0) + timedelta(
    seconds=5 * JOBS
)  # when the newest finished job was queued
AT = "LATERAL (SELECT timestamptz '2026-01-01' + n * interval '5 s' AS t) at"
ROWS = {
    "jobs": f"""
    INSERT INTO jobs (job_id, name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool,
        run_id, status, runner_name, skip_reason, heard_at, poll_at, created_at, seen_at, started_at, completed_at,
        updated_at)
    SELECT n, 'job ' || n, n % 50, 'org-' || n % 50, 'Organization', 'org/Repo-' || n % 500, '111', n % 50,
        CASE WHEN n % 5000 = 0 THEN ARRAY['rare', 'ubuntu-24.04-riscv'] ELSE ARRAY['ubuntu-24.04-riscv'] END,
        'p-' || n % 10, n / 3, status, CASE status WHEN 'pending' THEN NULL WHEN 'running' THEN 'w-' || n - {WAITING}
        ELSE 'w-' || n END, CASE status WHEN 'pending' THEN 'no_free_slots' END, t, t, t, t,
        CASE WHEN status <> 'pending' THEN t END, CASE WHEN n <= {JOBS} THEN t END, t
    FROM generate_series(1, {JOBS + WAITING + LIVE}) n, {AT}, LATERAL (SELECT CASE
        WHEN n > {JOBS + WAITING} THEN 'running' WHEN n > {JOBS} THEN 'pending' WHEN n % 100 = 2 THEN 'failed'
        ELSE 'completed' END AS status) its
    """,
    "workers": f"""
    INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image,
        made_for, node, status, failure_reason, pod_at, pod_ended_at, created_at, completed_at, updated_at)
    SELECT 'w-' || n, n % 50, 'org', 'Organization', '111', n % 50, '{{ubuntu-24.04-riscv}}', 'p-' || n % 10, 'i', n,
        'node-' || n % 100,
        CASE WHEN n > {JOBS} THEN 'running' WHEN n % 100 = 2 THEN 'failed' ELSE 'completed' END,
        CASE WHEN n <= {JOBS} AND n % 100 = 2 THEN 'pod_failed' END, t, ended, t, ended, t
    FROM generate_series({JOBS} - 200000, {JOBS + LIVE}) n, {AT},
        LATERAL (SELECT CASE WHEN n <= {JOBS} THEN t + interval '10 min' END AS ended) its
    """,
    "events": f"""
    INSERT INTO events (at, source, kind, delivery, job_id, worker, installation_id, app_id)
    SELECT t, 'webhook', CASE WHEN n % 10000 = 0 THEN 'installation.created' ELSE 'workflow_job.queued' END,
        'guid-' || n, n, 'w-' || n, n % 50, '111'
    FROM generate_series({JOBS} - 200000, {JOBS}) n, {AT}
    """,
    "occurrences": f"""
    INSERT INTO occurrences (schedule, due_at, action, status, created_at)
    SELECT 's-' || n % 20, t, 'pause', CASE WHEN n % 10000 = 0 THEN 'pending' WHEN n % 50 = 1 THEN 'failed'
        ELSE 'completed' END, t
    FROM generate_series({JOBS} - 200000, {JOBS}) n, {AT}
    """,
    "board_snapshots": f"""
    INSERT INTO board_snapshots (pool, at, slots, free, busy, held, unreachable, queue_depth, oldest_wait_seconds)
    SELECT 'p-' || pool, timestamptz '{LAST}' - minute * interval '1 min', 50, 10, 40, 0, 0, minute % 7, 9
    FROM generate_series(0, 4) pool, generate_series(0, 7 * 24 * 60) minute
    """,
    "boards": """
    INSERT INTO boards (node, board, state, slots, worker, heartbeat_at, updated_at)
    SELECT 'node-' || n, 'b-' || n % 10, 'busy', 1, 'w-' || n, now(), now() FROM generate_series(0, 499) n
    """,
    "schedules": """
    INSERT INTO schedules (name, owner, enabled, type, spec, action, created_at, updated_at)
    SELECT 's-' || n, 'file', true, 'cron', '0 8 * * *', 'prune', now(), now() FROM generate_series(0, 19) n
    """,
    "holds": """
    INSERT INTO holds (scope, target, why, who, created_at)
    SELECT 'board', 'node-' || n, 'drain', 'admin', now() FROM generate_series(1, 5) n
    """,
    "leader": "UPDATE leader SET holder = 'one:1', epoch = 1",
}
INDEXES = """
SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE tablename = %(table)s
    AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE conrelid = to_regclass(%(table)s))
"""


@asynccontextmanager
async def a_large_database(databases: Databases) -> AsyncIterator[Database]:
    """All of it, analysed; the indexes are made after the rows, which is faster."""
    url = await databases.migrated()
    async with opened(url) as database:
        connection = await database.connect()  # outside the pool, whose transactions may not take this long
        async with connection:
            for table in ROWS:
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
