"""Workers as the reconciler reads and writes them outside the table lock: reservations and what became of them.

Every write checks the epoch in its own transaction and names the allowed earlier states.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from controller.domain.constants import LOCK_TIMEOUT
from controller.domain.jobs import EntityType, Scope
from controller.domain.reasons import Reason
from controller.domain.reservations import Reservation, Reserved
from controller.domain.workers import Worker, WorkerStatus
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
        return [worker_of(row) for row in await self._database.fetch(self.CURRENT)]

    STATUSES = "SELECT name, status FROM workers WHERE name = ANY(%(names)s)"

    async def statuses(self, names: Collection[str]) -> Mapping[str, WorkerStatus]:
        """The status of each of these that has a row."""
        rows = await self._database.fetch(self.STATUSES, {"names": list(names)}) if names else []
        return {row["name"]: WorkerStatus(row["status"]) for row in rows}

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
        found = set()
        for row in await self._database.fetch(query, {"since": since}):
            entity = entity_of(row)
            repo = row["repo"] if entity.type is EntityType.USER else None
            found.add(Scope(row["app_id"], row["installation_id"], entity, repo))
        return frozenset(found)

    STILL_PENDING = """
    SELECT job_id FROM jobs WHERE job_id = ANY(%(job_ids)s) AND status = 'pending' AND mark IS NULL
    """
    STILL_OPEN = (
        "SELECT id FROM occurrences WHERE id = ANY(%(ids)s) AND status = 'running' AND warm_until > %(now)s"
    )
    HELD = """
    SELECT entity_id, count(*) AS held FROM workers WHERE entity_id = ANY(%(entity_ids)s) AND name IN (
        SELECT name FROM workers WHERE status IN ('pending', 'running') AND pod_ended_at IS NULL
        UNION SELECT name FROM workers WHERE pod_at IS NOT NULL AND pod_ended_at IS NULL)
    GROUP BY entity_id
    """
    RESERVE = """
    WITH reserved AS (
        INSERT INTO workers (name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool,
            image, made_for, warm_for, status, created_at, updated_at)
        SELECT name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool, image,
            made_for, warm_for, 'pending', %(now)s, %(now)s
        FROM jsonb_to_recordset(%(orders)s) AS ordered (name text, entity_id bigint, entity_name text,
            entity_type text, repo text, app_id text, installation_id bigint, labels text[], pool text, image text,
            made_for bigint, warm_for bigint)
        ON CONFLICT (name) DO NOTHING RETURNING name, made_for)
    INSERT INTO events (at, source, kind, job_id, worker)
    SELECT %(now)s, 'controller', 'worker.reserved', made_for, name FROM reserved RETURNING worker
    """

    async def reserve(self, orders: Sequence[Reservation], epoch: int, now: datetime) -> Reserved:
        """Insert these rows and commit; says which were written and which names are taken already."""
        async with self._database.leading(epoch) as connection:
            needed = await self._still_needed(connection, orders, now)
            fitting = await self._under_their_cap(connection, needed)
            values = {"orders": Jsonb([self._values(order) for order in fitting]), "now": now}
            rows = await (await connection.execute(self.RESERVE, values)).fetchall() if fitting else []
        written = frozenset(row["worker"] for row in rows)
        return Reserved(written, frozenset(order.name for order in fitting) - written)

    async def _still_needed(
        self, connection: Connection, orders: Sequence[Reservation], now: datetime
    ) -> list[Reservation]:
        """Those whose job is still pending, or whose warm window is still open."""
        job_ids = [order.made_for for order in orders if order.made_for is not None]
        windows = [order.warm_for for order in orders if order.warm_for is not None]
        pending: set[int] = set()
        if job_ids:
            cursor = await connection.execute(self.STILL_PENDING, {"job_ids": job_ids})
            pending = {row["job_id"] for row in await cursor.fetchall()}
        open_: set[int] = set()
        if windows:
            cursor = await connection.execute(self.STILL_OPEN, {"ids": windows, "now": now})
            open_ = {row["id"] for row in await cursor.fetchall()}
        return [order for order in orders if order.made_for in pending or order.warm_for in open_]

    async def _under_their_cap(
        self, connection: Connection, orders: Sequence[Reservation]
    ) -> list[Reservation]:
        """Those that their entity may still have, in their order."""
        capped = {order.entity.id for order in orders if order.max_workers is not None}
        if not capped:
            return list(orders)
        cursor = await connection.execute(self.HELD, {"entity_ids": list(capped)})
        held = Counter({row["entity_id"]: row["held"] for row in await cursor.fetchall()})
        fitting = []
        for order in orders:
            if order.max_workers is None or held[order.entity.id] < order.max_workers:
                held[order.entity.id] += 1
                fitting.append(order)
        return fitting

    def _values(self, order: Reservation) -> dict[str, Any]:
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
            "warm_for": order.warm_for,
        }

    NOTE_RUNNER = f"""
    WITH leads AS ({Database.LEADS}), noted AS (
        UPDATE workers SET group_id = %(group_id)s, runner_id = %(runner_id)s, jit_at = %(now)s, updated_at = %(now)s
        FROM leads WHERE name = %(name)s AND status IN ('pending', 'running'))
    SELECT ARRAY(SELECT target FROM holds WHERE scope = 'board' AND (until IS NULL OR until > %(now)s)) AS held
    FROM leads
    """

    async def note_runner(
        self, name: str, group_id: int, runner_id: int, epoch: int, now: datetime
    ) -> frozenset[str]:
        """The runner is registered; says which boards are held by now."""
        values = {"name": name, "group_id": group_id, "runner_id": runner_id, "now": now}
        row = await self._database.write(self.NOTE_RUNNER, values, epoch)
        return frozenset(row["held"])

    NOTE_POD = f"""
    WITH leads AS ({Database.LEADS}), noted AS (
        UPDATE workers SET create_rv = %(create_rv)s, pod_at = COALESCE(pod_at, %(now)s), updated_at = %(now)s
        FROM leads WHERE name = %(name)s)
    SELECT 1 FROM leads
    """

    async def note_pod(self, name: str, create_rv: int, epoch: int, now: datetime) -> None:
        """The pod is created."""
        values = {"name": name, "create_rv": create_rv, "now": now}
        await self._database.write(self.NOTE_POD, values, epoch)

    async def fail(
        self, name: str, reason: Reason, info: dict[str, Any], *, own_fault: bool, epoch: int, now: datetime
    ) -> bool:
        """End a live worker as failed and count it on the job it was made for; False if it had ended."""
        async with self._database.leading(epoch) as connection:
            return await fail_worker(connection, name, reason, info, own_fault=own_fault, now=now)

    DROP_INTENT = """
    UPDATE workers SET ending_reason = NULL, ending_since = %(now)s, not_busy_since = NULL, idle_since = NULL,
        updated_at = %(now)s
    WHERE name = %(name)s AND status IN ('pending', 'running') AND ending_reason IS NOT NULL
    """

    async def drop_intent(self, name: str, epoch: int, now: datetime) -> None:
        """GitHub keeps the runner: it is busy, so the worker is left alone; the row keeps when that was."""
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
