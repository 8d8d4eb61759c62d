"""What charts are drawn from: snapshots of pools, waits of jobs, failures of workers, and the day of each board."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from controller.domain.charts import BoardDay, Charts, FailurePoint, PoolPoint, Span, WaitPoint
from controller.domain.reasons import HARMLESS
from controller.gateways.postgres.database import Connection

POOLS = """
SELECT pool, floor(extract(epoch FROM at - %(start)s) / %(seconds)s)::integer AS bucket,
    max(queue_depth) AS queue_depth, sum(busy)::float / NULLIF(sum(slots), 0) AS utilisation
FROM board_snapshots WHERE at >= %(start)s AND at <= %(now)s
GROUP BY pool, bucket ORDER BY pool, bucket
"""
WAITS = """
SELECT pool, floor(extract(epoch FROM started_at - %(start)s) / %(seconds)s)::integer AS bucket, count(*) AS jobs,
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - created_at)) AS waits
FROM jobs WHERE started_at >= %(start)s AND started_at <= %(now)s AND pool IS NOT NULL
GROUP BY pool, bucket ORDER BY pool, bucket
"""
FAILURES = """
SELECT floor(extract(epoch FROM completed_at - %(start)s) / %(seconds)s)::integer AS bucket,
    COALESCE(failure_reason, 'unknown') AS reason, count(*) AS workers
FROM workers WHERE status = 'failed' AND completed_at >= %(start)s AND completed_at <= %(now)s
    AND COALESCE(failure_reason, '') <> ALL(%(harmless)s)
GROUP BY bucket, reason ORDER BY bucket, reason
"""


async def read_charts(connection: Connection, span: Span, now: datetime) -> Charts:
    """All points of one span; buckets in which nothing was measured are left out."""
    start = span.start(now)
    values: dict[str, Any] = {"start": start, "now": now, "seconds": int(span.bucket.total_seconds())}
    values |= {"harmless": [reason.value for reason in HARMLESS]}
    return Charts(
        span,
        start,
        tuple(PoolPoint(**row) for row in await _rows(connection, POOLS, values)),
        tuple(
            WaitPoint(
                row["pool"],
                row["bucket"],
                row["jobs"],
                *(timedelta(seconds=max(0.0, wait)) for wait in row["waits"]),
            )
            for row in await _rows(connection, WAITS, values)
        ),
        tuple(FailurePoint(**row) for row in await _rows(connection, FAILURES, values)),
    )


# A worker takes its board from the making of its pod to the pod's end; those that have not ended are few.
TAKEN = """
WITH taken AS (
    SELECT node, GREATEST(pod_at, %(start)s) AS since, LEAST(pod_ended_at, %(now)s) AS until
    FROM workers WHERE node = ANY(%(nodes)s) AND pod_ended_at >= %(start)s AND pod_at < %(now)s
    UNION ALL
    SELECT node, GREATEST(pod_at, %(start)s), %(now)s
    FROM workers WHERE node = ANY(%(nodes)s) AND pod_at IS NOT NULL AND pod_ended_at IS NULL
)
SELECT node, bucket, sum(extract(epoch FROM LEAST(until, %(start)s + (bucket + 1) * %(width)s::interval)
    - GREATEST(since, %(start)s + bucket * %(width)s::interval)))::float / %(seconds)s AS busy
FROM taken CROSS JOIN LATERAL generate_series(
    floor(extract(epoch FROM since - %(start)s) / %(seconds)s)::integer,
    LEAST(floor(extract(epoch FROM until - %(start)s) / %(seconds)s)::integer, %(buckets)s - 1)) AS bucket
WHERE until > since
GROUP BY node, bucket
"""
ENDED = """
SELECT node, count(*) AS ended,
    count(*) FILTER (WHERE status = 'failed' AND COALESCE(failure_reason, '') <> ALL(%(harmless)s)) AS failed
FROM workers WHERE node = ANY(%(nodes)s) AND pod_ended_at >= %(start)s
GROUP BY node
"""


async def read_board_days(
    connection: Connection, slots: dict[str, int], now: datetime
) -> tuple[BoardDay, ...]:
    """The last 24 hours of each of these boards, given with how many slots it has."""
    span = Span.DAY
    values = {
        "nodes": list(slots),
        "start": span.start(now),
        "now": now,
        "width": span.bucket,
        "seconds": int(span.bucket.total_seconds()),
        "buckets": span.buckets,
        "harmless": [reason.value for reason in HARMLESS],
    }
    busy: dict[str, list[float]] = defaultdict(lambda: [0.0] * span.buckets)
    for row in await _rows(connection, TAKEN, values):
        busy[row["node"]][row["bucket"]] = min(1.0, row["busy"] / max(1, slots[row["node"]]))
    ended = {row["node"]: row for row in await _rows(connection, ENDED, values)}
    return tuple(_day(node, busy[node], ended.get(node)) for node in slots)


def _day(node: str, busy: Sequence[float], ended: dict[str, Any] | None) -> BoardDay:
    return BoardDay(node, tuple(busy), ended["ended"] if ended else 0, ended["failed"] if ended else 0)


async def _rows(connection: Connection, query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    return await (await connection.execute(query, values, prepare=False)).fetchall()
