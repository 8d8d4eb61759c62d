"""Rows that nothing else would move on soon."""

from datetime import datetime

from controller.gateways.postgres.database import Database


class StuckStore:
    """Jobs that run at a worker which has ended, and what a wrong time has put off."""

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

    # Written by a clock that was ahead and has been set right: until its time comes nothing would happen there.
    JOBS_AHEAD = """
    UPDATE jobs SET poll_at = %(now)s, updated_at = %(now)s,
        retry_after = CASE WHEN retry_after > %(latest)s THEN %(now)s ELSE retry_after END
    WHERE status IN ('pending', 'running') AND (poll_at > %(latest)s OR retry_after > %(latest)s)
    """
    WORKERS_AHEAD = """
    UPDATE workers SET pod_at = CASE WHEN pod_at > %(now)s THEN %(now)s ELSE pod_at END,
        running_at = CASE WHEN running_at > %(now)s THEN %(now)s ELSE running_at END,
        online_at = CASE WHEN online_at > %(now)s THEN %(now)s ELSE online_at END,
        idle_since = CASE WHEN idle_since > %(now)s THEN %(now)s ELSE idle_since END,
        not_busy_since = CASE WHEN not_busy_since > %(now)s THEN %(now)s ELSE not_busy_since END,
        busy_since = CASE WHEN busy_since > %(now)s THEN %(now)s ELSE busy_since END,
        ending_since = CASE WHEN ending_since > %(now)s THEN %(now)s ELSE ending_since END, updated_at = %(now)s
    WHERE status IN ('pending', 'running')
      AND GREATEST(pod_at, running_at, online_at, idle_since, not_busy_since, busy_since, ending_since) > %(now)s
    """

    async def pull_back(self, latest: datetime, epoch: int, now: datetime) -> int:
        """Take back what was put off beyond `latest`, and times of live workers to come; how many rows were."""
        values = {"now": now, "latest": latest}
        pulled = 0
        for statement in (self.JOBS_AHEAD, self.WORKERS_AHEAD):
            async with self._database.leading(epoch) as connection:
                pulled += (await connection.execute(statement, values)).rowcount
        return pulled
