"""Counts for the demo's summary."""

from datetime import datetime

from controller.gateways.postgres.database import Database

STATUSES = "SELECT job_id, status FROM jobs"
FAILURES = """
SELECT failure_reason AS reason, count(*) AS failures FROM workers
WHERE status = 'failed' AND created_at >= %(since)s GROUP BY failure_reason
"""
HELD = "SELECT target FROM holds"


async def job_statuses(database: Database) -> dict[int, str]:
    """What our rows say of every job."""
    async with database.transaction() as connection:
        rows = await (await connection.execute(STATUSES)).fetchall()
        return {row["job_id"]: row["status"] for row in rows}


async def failure_counts(database: Database, since: datetime) -> dict[str, int]:
    """How many workers made since then failed for which reason."""
    async with database.transaction() as connection:
        rows = await (await connection.execute(FAILURES, {"since": since})).fetchall()
        return {row["reason"]: row["failures"] for row in rows}


async def held_targets(database: Database) -> frozenset[str]:
    """The boards and pools that are held."""
    async with database.transaction() as connection:
        rows = await (await connection.execute(HELD)).fetchall()
        return frozenset(row["target"] for row in rows)
