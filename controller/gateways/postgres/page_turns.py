"""What the page of a waiting job reads besides the job: its queue, and how quickly its boards work.

The queue is that of a board type: pools that share boards wait for the same ones.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from controller.domain.jobs import Job
from controller.domain.pages import Ahead, Pace, Turn
from controller.gateways.postgres.database import Connection
from controller.gateways.postgres.rows import entity_of

LAST_WORKERS = 100

# Jobs that have a runner on its way, or are kept back for a reason of their own, take nobody's turn.
QUEUE = """
SELECT entity_id, entity_type, min(entity_name) AS entity_name, count(*) AS waiting,
    count(*) FILTER (WHERE (created_at, job_id) < (%(created_at)s, %(job_id)s)) AS earlier
FROM jobs
WHERE status = 'pending' AND pool = ANY(%(pools)s) AND mark IS NULL AND confirmed
  AND (skip_reason IS NULL OR skip_reason IN ('no_free_slots', 'github_budget_low', 'cluster_unknown'))
GROUP BY entity_id, entity_type
"""
SLOTS = """
SELECT COALESCE(sum(slots), 0) AS slots FROM boards WHERE board = %(board)s AND state IN ('free', 'busy', 'promised')
"""
PACE = """
SELECT count(*) AS finished,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM w.pod_ended_at - w.created_at)) AS board_time,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM j.started_at - w.created_at)) AS start_time
FROM (
    SELECT done.* FROM unnest(%(pools)s::text[]) AS p (pool) CROSS JOIN LATERAL (
        SELECT name, created_at, pod_ended_at, completed_at FROM workers
        WHERE workers.pool = p.pool AND status = 'completed' ORDER BY completed_at DESC LIMIT %(limit)s) done
    ORDER BY done.completed_at DESC LIMIT %(limit)s
) w JOIN jobs j ON j.runner_name = w.name
WHERE j.status = 'completed' AND j.started_at IS NOT NULL AND w.pod_ended_at IS NOT NULL
"""


async def read_turn(connection: Connection, job: Job, board: str, pools: Sequence[str]) -> Turn:
    """The queue for boards of this type by owner, and their pace; `pools` are all that use them."""
    values: dict[str, Any] = {
        "created_at": job.created_at,
        "job_id": job.job_id,
        "pools": list(pools),
        "board": board,
        "limit": LAST_WORKERS,
    }
    waiting = await (await connection.execute(QUEUE, values, prepare=False)).fetchall()
    slots = await (await connection.execute(SLOTS, values, prepare=False)).fetchone()
    pace = await (await connection.execute(PACE, values, prepare=False)).fetchone()
    return Turn(
        tuple(Ahead(entity_of(row), row["waiting"], row["earlier"]) for row in waiting),
        Pace(
            slots["slots"] if slots else 0,
            pace["finished"] if pace else 0,
            _seconds(pace["board_time"] if pace else None),
            _seconds(pace["start_time"] if pace else None),
        ),
    )


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=max(0.0, value))
