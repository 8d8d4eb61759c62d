"""The one way in which a worker fails, under the table lock and outside it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from controller.domain.reasons import Reason
from controller.gateways.postgres.database import Connection
from controller.gateways.postgres.events import note_event
from controller.gateways.postgres.jobs import JobStore

FAIL = """
UPDATE workers SET status = 'failed', failure_reason = %(reason)s,
    failure_info = COALESCE(failure_info, '{}') || %(info)s, completed_at = %(now)s, updated_at = %(now)s
WHERE name = %(name)s AND status IN ('pending', 'running')
RETURNING made_for, pool, idle_since, ending_reason
"""


async def fail_worker(
    connection: Connection, name: str, reason: Reason, info: dict[str, Any], *, own_fault: bool, now: datetime
) -> bool:
    """The guarded end of a worker, with its event and its count on the job, in one transaction."""
    cursor = await connection.execute(
        FAIL, {"name": name, "reason": reason.value, "info": Jsonb(info), "now": now}
    )
    row = await cursor.fetchone()
    if row is None:
        return False
    detail = {"reason": reason.value, "pool": row["pool"]}
    await note_event(connection, "worker.failed", now, worker=name, job_id=row["made_for"], detail=detail)
    if row["ending_reason"] is None:  # else it was counted when its end was decided
        await count_failure(connection, row, reason, own_fault=own_fault, now=now)
    return True


async def count_failure(
    connection: Connection, worker: Mapping[str, Any], reason: Reason, *, own_fault: bool, now: datetime
) -> None:
    """Note a failed attempt on the job that the worker was made for."""
    if worker["made_for"] is None:
        return
    await JobStore.count_failure(
        connection, worker["made_for"], reason, own_fault=own_fault, idle_since=worker["idle_since"], now=now
    )
