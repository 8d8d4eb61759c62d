"""Rows that nothing else would move on soon."""

from datetime import datetime

from controller.gateways.postgres.database import Database


class StuckStore:
    """Jobs that run at a worker which has ended."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # A job whose `in_progress` came after its pod's end was noticed; else that notice brings the look forward.
    LOOK_NOW = """
    UPDATE jobs j SET poll_at = %(now)s, updated_at = %(now)s FROM workers w
    WHERE j.status = 'running' AND j.poll_at > %(now)s AND w.name = j.runner_name
      AND w.status IN ('completed', 'failed') AND w.completed_at <= %(before)s
    RETURNING j.job_id
    """

    async def look_now(self, before: datetime, epoch: int, now: datetime) -> list[int]:
        """Have GitHub asked about the running jobs whose worker ended before then; which they are."""
        async with self._database.leading(epoch) as connection:
            cursor = await connection.execute(self.LOOK_NOW, {"before": before, "now": now})
            return [row["job_id"] for row in await cursor.fetchall()]
