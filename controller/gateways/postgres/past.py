"""Rows of a past that never was: what the demo shows before anything has happened in it."""

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from controller.gateways.postgres.database import Database

JOBS = """
INSERT INTO jobs (job_id, name, html_url, entity_id, entity_name, entity_type, repo, private, app_id,
    installation_id, labels, pool, run_id, status, conclusion, runner_name, heard_at, poll_at, created_at, seen_at,
    started_at, completed_at, updated_at)
VALUES (%(job_id)s, %(name)s, %(html_url)s, %(entity_id)s, %(entity_name)s, %(entity_type)s, %(repo)s, %(private)s,
    %(app_id)s, %(installation_id)s, %(labels)s, %(pool)s, %(run_id)s, 'completed', %(conclusion)s, %(worker)s,
    %(ended_at)s, %(ended_at)s, %(queued_at)s, %(queued_at)s, %(started_at)s, %(ended_at)s, %(ended_at)s)
"""
WORKERS = """
INSERT INTO workers (name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool, image,
    made_for, node, status, failure_reason, failure_info, created_at, jit_at, pod_at, running_at, online_at,
    pod_ended_at, completed_at, updated_at)
VALUES (%(worker)s, %(entity_id)s, %(entity_name)s, %(entity_type)s, %(own_repo)s, %(app_id)s, %(installation_id)s,
    %(labels)s, %(pool)s, %(image)s, %(made_for)s, %(node)s, %(status)s, %(failure_reason)s, %(failure_info)s,
    %(reserved_at)s, %(reserved_at)s, %(reserved_at)s, %(running_at)s, %(online_at)s, %(ended_at)s,
    %(ended_at)s, %(ended_at)s)
"""
SNAPSHOTS = """
INSERT INTO board_snapshots (pool, at, slots, free, busy, held, unreachable, queue_depth, oldest_wait_seconds)
SELECT %(pool)s, at, %(slots)s, %(slots)s - busy, busy, 0, 0, depth, oldest
FROM unnest(%(at)s::timestamptz[], %(busy)s::integer[], %(depth)s::integer[], %(oldest)s::integer[])
    AS minutes (at, busy, depth, oldest)
"""


async def write_past(
    database: Database,
    jobs: Sequence[dict[str, Any]],
    workers: Sequence[dict[str, Any]],
    snapshots: Sequence[dict[str, Any]],
) -> None:
    """Write finished jobs, ended workers, and the snapshots of each pool minute by minute."""
    async with database.transaction() as connection, connection.cursor() as cursor:
        await cursor.executemany(JOBS, jobs)
        await cursor.executemany(WORKERS, map(_as_json, workers))
        await cursor.executemany(SNAPSHOTS, snapshots)


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    info = row["failure_info"]
    return {**row, "failure_info": Jsonb(info) if info is not None else None}
