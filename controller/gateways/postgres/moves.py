"""Rows that follow an owner who was renamed, or who has installed the App anew."""

from datetime import datetime

from controller.domain.jobs import Scope
from controller.gateways.postgres.database import Database


class MoveStore:
    """Writes to live rows only: those that have ended tell how it was.

    A repository keeps the name that GitHub gave it: that one redirects, one made up of the new owner and an old name
    may never have been.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    WORKERS = """
    UPDATE workers SET installation_id = %(installation_id)s, entity_name = %(entity_name)s, updated_at = %(now)s
    WHERE app_id = %(app_id)s AND installation_id = %(old)s AND entity_id = %(entity_id)s
      AND status IN ('pending', 'running')
    """
    JOBS = """
    SELECT job_id FROM jobs WHERE app_id = %(app_id)s AND installation_id = %(old)s AND entity_id = %(entity_id)s
      AND status IN ('pending', 'running')
    """
    JOB = """
    UPDATE jobs SET installation_id = %(installation_id)s, entity_name = %(entity_name)s, poll_at = %(now)s,
        updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    """

    async def move(self, old: Scope, new: Scope, epoch: int, now: datetime) -> None:
        """Give the live rows of an installation the owner's present name and installation."""
        values = {
            "app_id": old.app_id,
            "old": old.installation_id,
            "entity_id": old.entity.id,
            "installation_id": new.installation_id,
            "entity_name": new.entity.name,
            "now": now,
        }
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.WORKERS, values)
        for row in await self._database.fetch(self.JOBS, values):
            # One job at a time: holding one while waiting for another would end in a deadlock with the loop's steps.
            async with self._database.leading(epoch) as connection:
                await connection.execute(self.JOB, {**values, "job_id": row["job_id"]})
