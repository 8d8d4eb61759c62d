"""Workers as the reconciler reads and writes them outside the table lock: reservations and what became of them.

Every write checks the epoch in its own transaction and names the allowed earlier states.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from controller.domain.constants import LOCK_TIMEOUT
from controller.domain.jobs import EntityType, Scope
from controller.domain.reasons import Reason
from controller.domain.reservations import Reservation, Reserved
from controller.domain.workers import Worker
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.endings import fail_worker
from controller.gateways.postgres.events import note_event
from controller.gateways.postgres.locked_workers import LockedRows
from controller.gateways.postgres.rows import BINDING, WORKER_COLUMNS, entity_of, worker_of


class WorkerStore:
    """The workers table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    LOCK_PATIENCE = f"SET LOCAL lock_timeout = {int(LOCK_TIMEOUT.total_seconds() * 1000)}"
    LOCK = "LOCK TABLE workers IN EXCLUSIVE MODE"

    @asynccontextmanager
    async def locked(self, epoch: int) -> AsyncIterator[LockedRows]:
        """One transaction that holds the table's lock; no network call belongs into it."""
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.LOCK_PATIENCE)
            await connection.execute(self.LOCK)
            yield LockedRows(connection)

    CURRENT = f"""
    SELECT {WORKER_COLUMNS} FROM workers w {BINDING} WHERE w.name IN (
        SELECT name FROM workers WHERE status IN ('pending', 'running')
        UNION SELECT name FROM workers WHERE pod_at IS NOT NULL AND pod_ended_at IS NULL)
    """

    async def current(self) -> list[Worker]:
        """Live rows, and ended ones whose pod is not known to be gone."""
        async with self._database.transaction() as connection:
            return [worker_of(row) for row in await (await connection.execute(self.CURRENT)).fetchall()]

    SCOPES = """
    SELECT DISTINCT app_id, installation_id, entity_id, entity_name, entity_type, repo FROM workers
    WHERE created_at >= %(since)s
    """

    FAILED_SCOPES = """
    SELECT DISTINCT app_id, installation_id, entity_id, entity_name, entity_type, repo FROM workers
    WHERE status = 'failed' AND completed_at >= %(since)s
    """

    async def scopes(self, since: datetime) -> frozenset[Scope]:
        """Where runners were registered since then."""
        return await self._scopes(self.SCOPES, since)

    async def failed_scopes(self, since: datetime) -> frozenset[Scope]:
        """Where workers have failed since then, so that their runners may have stayed behind."""
        return await self._scopes(self.FAILED_SCOPES, since)

    async def _scopes(self, query: str, since: datetime) -> frozenset[Scope]:
        async with self._database.transaction() as connection:
            rows = await (await connection.execute(query, {"since": since})).fetchall()
        found = set()
        for row in rows:
            entity = entity_of(row)
            repo = row["repo"] if entity.type is EntityType.USER else None
            found.add(Scope(row["app_id"], row["installation_id"], entity, repo))
        return frozenset(found)

    STILL_PENDING = "SELECT job_id FROM jobs WHERE job_id = ANY(%(job_ids)s) AND status = 'pending'"
    HELD = """
    SELECT count(*) AS held FROM workers WHERE entity_id = %(entity_id)s AND name IN (
        SELECT name FROM workers WHERE status IN ('pending', 'running') AND pod_ended_at IS NULL
        UNION SELECT name FROM workers WHERE pod_at IS NOT NULL AND pod_ended_at IS NULL)
    """
    RESERVE = """
    INSERT INTO workers (name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool,
        image, made_for, status, created_at, updated_at)
    VALUES (%(name)s, %(entity_id)s, %(entity_name)s, %(entity_type)s, %(repo)s, %(app_id)s,
        %(installation_id)s, %(labels)s, %(pool)s, %(image)s, %(made_for)s, 'pending', %(now)s, %(now)s)
    ON CONFLICT (name) DO NOTHING
    """

    async def reserve(self, orders: Sequence[Reservation], epoch: int, now: datetime) -> Reserved:
        """Insert these rows and commit; says which were written and which names are taken already."""
        written: set[str] = set()
        taken: set[str] = set()
        async with self._database.leading(epoch) as connection:
            made_for = {"job_ids": [order.made_for for order in orders]}
            rows = await (await connection.execute(self.STILL_PENDING, made_for)).fetchall()
            wanted = {row["job_id"] for row in rows}
            for order in (order for order in orders if order.made_for in wanted):
                if order.max_workers is not None and await self._held(connection, order) >= order.max_workers:
                    continue
                cursor = await connection.execute(self.RESERVE, self._values(order, now))
                (written if cursor.rowcount else taken).add(order.name)
                if cursor.rowcount:
                    job_id = order.made_for
                    await note_event(connection, "worker.reserved", now, worker=order.name, job_id=job_id)
        return Reserved(frozenset(written), frozenset(taken))

    async def _held(self, connection: Connection, order: Reservation) -> int:
        row = await (await connection.execute(self.HELD, {"entity_id": order.entity.id})).fetchone()
        return row["held"] if row else 0

    def _values(self, order: Reservation, now: datetime) -> dict[str, Any]:
        return {
            "name": order.name,
            "entity_id": order.entity.id,
            "entity_name": order.entity.name,
            "entity_type": order.entity.type.value,
            "repo": order.repo,
            "app_id": order.app_id,
            "installation_id": order.installation_id,
            "labels": list(order.labels),
            "pool": order.pool,
            "image": order.image,
            "made_for": order.made_for,
            "now": now,
        }

    NOTE_RUNNER = """
    UPDATE workers SET group_id = %(group_id)s, runner_id = %(runner_id)s, jit_at = %(now)s, updated_at = %(now)s
    WHERE name = %(name)s AND status IN ('pending', 'running')
    """

    async def note_runner(self, name: str, group_id: int, runner_id: int, epoch: int, now: datetime) -> None:
        """The runner is registered."""
        values = {"name": name, "group_id": group_id, "runner_id": runner_id, "now": now}
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.NOTE_RUNNER, values)

    NOTE_POD = """
    UPDATE workers SET create_rv = %(create_rv)s, pod_at = COALESCE(pod_at, %(now)s), updated_at = %(now)s
    WHERE name = %(name)s
    """

    async def note_pod(self, name: str, create_rv: int, epoch: int, now: datetime) -> None:
        """The pod is created."""
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.NOTE_POD, {"name": name, "create_rv": create_rv, "now": now})

    async def fail(
        self, name: str, reason: Reason, info: dict[str, Any], *, own_fault: bool, epoch: int, now: datetime
    ) -> bool:
        """End a live worker as failed and count it on the job it was made for; False if it had ended."""
        async with self._database.leading(epoch) as connection:
            return await fail_worker(connection, name, reason, info, own_fault=own_fault, now=now)

    DROP_INTENT = """
    UPDATE workers SET ending_reason = NULL, ending_since = NULL, not_busy_since = NULL, idle_since = NULL,
        updated_at = %(now)s
    WHERE name = %(name)s AND status IN ('pending', 'running') AND ending_reason IS NOT NULL
    """

    async def drop_intent(self, name: str, epoch: int, now: datetime) -> None:
        """GitHub keeps the runner: it is busy, so the worker is left alone."""
        async with self._database.leading(epoch) as connection:
            cursor = await connection.execute(self.DROP_INTENT, {"name": name, "now": now})
            if cursor.rowcount:
                await note_event(connection, "worker.kill_refused", now, worker=name)

    KEEP_REPORT = """
    UPDATE workers SET failure_info = COALESCE(failure_info, '{}') || %(info)s, updated_at = %(now)s
    WHERE name = %(name)s
    """

    async def keep_report(self, name: str, info: dict[str, Any], epoch: int, now: datetime) -> None:
        """Add what a failed worker's pod told."""
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.KEEP_REPORT, {"name": name, "info": Jsonb(info), "now": now})
