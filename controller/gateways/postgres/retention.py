"""Forgetting side data that has become old. Rows of jobs and workers stay.

Events of installations stay too: the last one of each says whether it is suspended.
"""

from datetime import datetime

from controller.gateways.postgres.database import Database

BATCH = 5_000  # rows of a kind in one transaction, so that nobody waits for long


class RetentionStore:
    """What retention removes; each call takes one batch."""

    def __init__(self, database: Database) -> None:
        self._database = database

    EVENTS = """
    DELETE FROM events WHERE id IN (
        SELECT id FROM events WHERE at < %(before)s AND kind NOT LIKE 'installation.%%' ORDER BY at LIMIT %(batch)s)
    """

    async def forget_events(self, before: datetime, epoch: int) -> int:
        """Remove events from before then; how many."""
        return await self._run(self.EVENTS, before, epoch)

    OCCURRENCES = """
    DELETE FROM occurrences WHERE id IN (
        SELECT o.id FROM occurrences o
        WHERE o.created_at < %(before)s AND o.status NOT IN ('pending', 'running') AND EXISTS (
            SELECT 1 FROM occurrences n WHERE n.schedule = o.schedule AND n.due_at > o.due_at)
        ORDER BY o.created_at LIMIT %(batch)s)
    """

    async def forget_occurrences(self, before: datetime, epoch: int) -> int:
        """Remove occurrences that ended before then, but for the newest of each schedule; how many."""
        return await self._run(self.OCCURRENCES, before, epoch)

    SNAPSHOTS = """
    DELETE FROM board_snapshots WHERE (pool, at) IN (
        SELECT pool, at FROM board_snapshots WHERE at < %(before)s ORDER BY at LIMIT %(batch)s)
    """

    async def forget_snapshots(self, before: datetime, epoch: int) -> int:
        """Remove snapshots from before then; how many."""
        return await self._run(self.SNAPSHOTS, before, epoch)

    FAILURE_LOGS = """
    UPDATE workers SET failure_info = failure_info - 'log_tail' - 'events' WHERE name IN (
        SELECT name FROM workers WHERE completed_at < %(before)s
          AND failure_info ?| ARRAY['log_tail', 'events'] ORDER BY completed_at LIMIT %(batch)s)
    """

    async def forget_failure_logs(self, before: datetime, epoch: int) -> int:
        """Remove log lines and events of workers that failed before then; how many workers."""
        return await self._run(self.FAILURE_LOGS, before, epoch)

    HOLDS = "DELETE FROM holds WHERE until < %(before)s AND why IN ('pause', 'drain')"  # the loop keeps the others

    async def forget_holds(self, before: datetime, epoch: int) -> int:
        """Remove pauses and drains that ended before then; how many."""
        return await self._run(self.HOLDS, before, epoch)

    async def _run(self, query: str, before: datetime, epoch: int) -> int:
        async with self._database.leading(epoch) as connection:
            return (await connection.execute(query, {"before": before, "batch": BATCH})).rowcount
