"""Queue controls: what people write by hand. Each is one short transaction: the change, its event, the doorbell.

They are the API's writes and need no leadership: marks and holds are wishes that the leader's next iteration reads.
A row's lock puts concurrent actions on one job into an order, and their events into the same one.
"""

from datetime import datetime
from typing import Any

from controller.domain.controls import Acted, Held, JobAction, Target
from controller.domain.holds import Hold, HoldScope
from controller.domain.jobs import JobStatus
from controller.gateways.postgres.database import Connection, Database, ring
from controller.gateways.postgres.holds import holds_on, lift_hold, note_act, set_hold
from controller.gateways.postgres.job_history import entities_named
from controller.gateways.postgres.rows import JOB_COLUMNS, job_of

SOURCE = "admin"
KINDS = {JobAction.RETRY: "job.retried", JobAction.CANCEL: "job.cancelled"}


class ControlStore:
    """What the API writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    LOCK = f"SELECT {JOB_COLUMNS} FROM jobs WHERE job_id = %(job_id)s FOR UPDATE"
    # The stored reason goes too where it is no longer true; the next iteration finds the one that is.
    RETRY = f"""
    UPDATE jobs SET attempts = 0, own_faults = 0, retry_after = NULL, mark = NULL, skip_reason = NULL,
        skip_since = %(now)s, skip_detail = '{{}}', updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending' RETURNING {JOB_COLUMNS}
    """
    CANCEL = f"""
    UPDATE jobs SET mark = 'cancelled', skip_reason = 'cancelled', skip_detail = '{{}}',
        skip_since = CASE WHEN skip_reason = 'cancelled' THEN skip_since ELSE %(now)s END, updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending' RETURNING {JOB_COLUMNS}
    """

    async def act(self, job_id: int, action: JobAction, who: str, note: str, now: datetime) -> Acted | None:
        """Retry or cancel a pending job; None if there is no such job, unchanged if it runs or has ended."""
        values: dict[str, Any] = {"job_id": job_id, "now": now}
        async with self._database.transaction() as connection:
            row = await (await connection.execute(self.LOCK, values)).fetchone()
            if row is None:
                return None
            job = job_of(row)
            if job.status is not JobStatus.PENDING:
                return Acted(job, done=False)
            query = self.RETRY if action is JobAction.RETRY else self.CANCEL
            changed = await (await connection.execute(query, values)).fetchone()
            before = {"mark": job.mark.value if job.mark else None, "attempts": job.attempts, "note": note}
            kind, owner = KINDS[action], job.entity.id
            await note_act(connection, kind, SOURCE, who, now, job_id=job_id, entity_id=owner, detail=before)
            await ring(connection, self._database.channel)
        return Acted(job_of(changed) if changed else job, done=True)

    async def hold(self, hold: Hold, now: datetime) -> Held:
        """Pause a pool or entity, or drain a board."""
        async with self._database.transaction() as connection:
            await set_hold(connection, hold, SOURCE, now)
            await ring(connection, self._database.channel)
            target = Target(hold.scope, hold.target)
            return Held(target, await holds_on(connection, hold.scope, hold.target, now))

    async def resume(self, target: Target, who: str, note: str, now: datetime) -> Held:
        """Let it go on; the answer tells what still holds it."""
        async with self._database.transaction() as connection:
            await lift_hold(connection, target.scope, target.name, who, SOURCE, now, note)
            await ring(connection, self._database.channel)
            return Held(target, await holds_on(connection, target.scope, target.name, now))

    NAMED = "SELECT entity_name FROM jobs WHERE entity_id = %(id)s ORDER BY created_at DESC LIMIT 1"
    BOARD = """
    SELECT EXISTS (SELECT FROM boards WHERE node = %(node)s)
        OR EXISTS (SELECT FROM holds WHERE scope = 'board' AND target = %(node)s) AS known
    """
    ENTITY_HELD = "SELECT EXISTS (SELECT FROM holds WHERE scope = 'entity' AND target = %(login)s) AS known"

    async def find_entity(self, login: str) -> Target | None:
        """The entity of that login or id, if a job of it ever came or a hold is on it."""
        async with self._database.transaction() as connection:
            for entity_id in await entities_named(connection, login) or ():
                row = await (await connection.execute(self.NAMED, {"id": entity_id})).fetchone()
                if row is not None:
                    return Target(HoldScope.ENTITY, row["entity_name"].lower())
            known = await self._known(connection, self.ENTITY_HELD, {"login": login.lower()})
        return Target(HoldScope.ENTITY, login.lower()) if known else None

    async def find_board(self, node: str) -> Target | None:
        """The board of that name, if it was ever seen or a hold is on it."""
        async with self._database.transaction() as connection:
            known = await self._known(connection, self.BOARD, {"node": node})
        return Target(HoldScope.BOARD, node) if known else None

    @staticmethod
    async def _known(connection: Connection, query: str, values: dict[str, Any]) -> bool:
        row = await (await connection.execute(query, values)).fetchone()
        return bool(row and row["known"])
