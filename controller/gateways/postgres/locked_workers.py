"""The workers table under its EXCLUSIVE lock: what the phases of sync_workers read and write.

Each change runs in a savepoint, so that one bad row does not undo the rest. What pods and runner lists say of many
workers at once is one statement, since others wait for the lock, and row by row only if one of them is bad.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, assert_never

import psycopg
import structlog

from controller.domain.changes import (
    Adopt,
    Fail,
    Finish,
    Intend,
    PodGone,
    ReadRunner,
    SeePod,
    WorkerChange,
)
from controller.domain.constants import AFTER_POD_ENDED
from controller.domain.workers import Worker, WorkerStatus
from controller.gateways.postgres.database import Connection
from controller.gateways.postgres.endings import count_failure, fail_worker
from controller.gateways.postgres.events import note_event
from controller.gateways.postgres.rows import BINDING, WORKER_COLUMNS, worker_of

log = structlog.get_logger()

LOOKED_AT = 100  # waiting jobs, when a runner has ended well and nobody knows which of them it had
REFUSED = (psycopg.errors.IntegrityError, psycopg.errors.DataError)
_Single = PodGone | Finish | Fail | Intend | Adopt  # written one by one


class LockedRows:
    """Lives only inside `WorkerStore.locked`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    ROWS = f"""
    SELECT {WORKER_COLUMNS} FROM workers w {BINDING} WHERE w.name IN (
        SELECT name FROM workers WHERE status IN ('pending', 'running')
        UNION SELECT name FROM workers WHERE pod_at IS NOT NULL AND pod_ended_at IS NULL
        UNION SELECT name FROM workers WHERE name = ANY(%(also)s))
    """

    async def rows(self, also: Collection[str]) -> list[Worker]:
        """Live rows, ended ones whose pod is not known to be gone, and those of these names."""
        cursor = await self._connection.execute(self.ROWS, {"also": list(also)})
        return [worker_of(row) for row in await cursor.fetchall()]

    STATUSES = "SELECT name, status FROM workers WHERE name = ANY(%(names)s)"

    async def statuses(self, names: Collection[str]) -> Mapping[str, WorkerStatus]:
        """The status of each of these that has a row."""
        if not names:
            return {}
        cursor = await self._connection.execute(self.STATUSES, {"names": list(names)})
        return {row["name"]: WorkerStatus(row["status"]) for row in await cursor.fetchall()}

    async def apply(self, changes: Sequence[WorkerChange], now: datetime) -> list[bool]:
        """Write these changes; False for each that a row has moved past or would not take."""
        seen = await self._note(self.SEE_PODS, [each for each in changes if isinstance(each, SeePod)], now)
        read = await self._note(
            self.READ_RUNNERS, [each for each in changes if isinstance(each, ReadRunner)], now
        )
        done: list[bool] = []
        for change in changes:
            match change:
                case SeePod(name):
                    done.append(name in seen)
                case ReadRunner(name):
                    done.append(name in read)
                case _:
                    done.append(await self._alone(change, now))
        return done

    async def _note(
        self, query: str, changes: Sequence[SeePod | ReadRunner], now: datetime
    ) -> frozenset[str]:
        """Write changes of one kind; the names of the rows that took theirs."""
        if not changes:
            return frozenset()
        values = {
            each.name: [getattr(change, each.name) for change in changes] for each in fields(changes[0])
        }
        try:
            async with self._connection.transaction():
                cursor = await self._connection.execute(query, {**values, "now": now})
                return frozenset(row["name"] for row in await cursor.fetchall())
        except REFUSED as error:
            if len(changes) == 1:
                _log_refused(changes[0], error)
                return frozenset()
        return frozenset().union(*[await self._note(query, [change], now) for change in changes])

    async def _alone(self, change: _Single, now: datetime) -> bool:
        try:
            async with self._connection.transaction():
                return await self._apply(change, now)
        except REFUSED as error:
            _log_refused(change, error)
            return False

    async def _apply(self, change: _Single, now: datetime) -> bool:
        match change:
            case PodGone(name, at, look):
                await self._run(self.LOOK_SOON, {"name": name, "at": now + AFTER_POD_ENDED})
                if look:
                    await self._run(self.LOOK_NOW, {"name": name, "now": now, "oldest": LOOKED_AT})
                return await self._run(self.POD_GONE, {"name": name, "at": at, "now": now})
            case Finish(name):
                return await self._finish(name, now)
            case Fail(name, reason, info):
                return await fail_worker(self._connection, name, reason, info, own_fault=False, now=now)
            case Intend():
                return await self._intend(change, now)
            case Adopt():
                return await self._adopt(change, now)
            case _:
                assert_never(change)

    SEE_PODS = """
    UPDATE workers w SET pod_at = COALESCE(w.pod_at, s.pod_at), create_rv = COALESCE(w.create_rv, s.create_rv),
        node = COALESCE(s.node, w.node), running_at = COALESCE(w.running_at, s.running_at),
        status = CASE WHEN w.status = 'pending' AND s.running_at IS NOT NULL THEN 'running' ELSE w.status END,
        updated_at = %(now)s
    FROM unnest(%(name)s::text[], %(pod_at)s::timestamptz[], %(create_rv)s::bigint[], %(node)s::text[],
        %(running_at)s::timestamptz[]) AS s (name, pod_at, create_rv, node, running_at)
    WHERE w.name = s.name RETURNING w.name
    """
    POD_GONE = """
    UPDATE workers SET pod_ended_at = %(at)s, updated_at = %(now)s WHERE name = %(name)s AND pod_ended_at IS NULL
    """
    LOOK_SOON = """
    UPDATE jobs SET poll_at = LEAST(poll_at, %(at)s) WHERE runner_name = %(name)s AND status = 'running'
    """
    # GitHub gives a runner one of the oldest jobs; each that is looked at may be a request, and thousands may wait.
    LOOK_NOW = """
    UPDATE jobs SET poll_at = %(now)s WHERE status = 'pending' AND poll_at > %(now)s AND job_id IN (
        SELECT j.job_id FROM workers w JOIN jobs j ON j.entity_id = w.entity_id AND j.labels = w.labels
        WHERE w.name = %(name)s AND j.status = 'pending' AND (w.repo IS NULL OR j.repo = w.repo)
        ORDER BY j.created_at, j.job_id LIMIT %(oldest)s)
    """
    FINISH = """
    UPDATE workers SET status = 'completed', completed_at = %(now)s, updated_at = %(now)s
    WHERE name = %(name)s AND status IN ('pending', 'running')
    """
    INTEND = """
    UPDATE workers SET ending_reason = %(reason)s, ending_since = %(now)s, updated_at = %(now)s
    WHERE name = %(name)s AND status IN ('pending', 'running') AND ending_reason IS NULL
    RETURNING made_for, idle_since
    """
    READ_RUNNERS = """
    UPDATE workers w SET runner_id = COALESCE(w.runner_id, r.runner_id),
        runner_version = COALESCE(r.version, w.runner_version),
        online_at = CASE WHEN r.online THEN COALESCE(w.online_at, %(now)s) ELSE w.online_at END,
        idle_since = CASE WHEN r.online AND NOT r.busy THEN COALESCE(w.idle_since, %(now)s) END,
        not_busy_since = CASE WHEN NOT r.busy THEN COALESCE(w.not_busy_since, %(now)s) END,
        busy_since = CASE WHEN r.busy THEN COALESCE(w.busy_since, %(now)s) END,
        read_at = %(now)s, updated_at = %(now)s
    FROM unnest(%(name)s::text[], %(runner_id)s::bigint[], %(version)s::text[], %(online)s::boolean[],
        %(busy)s::boolean[]) AS r (name, runner_id, version, online, busy)
    WHERE w.name = r.name AND w.status IN ('pending', 'running') RETURNING w.name
    """
    ADOPT = """
    INSERT INTO workers (name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool,
        image, runner_id, status, pod_at, create_rv, created_at, updated_at)
    VALUES (%(name)s, %(entity_id)s, %(entity_name)s, %(entity_type)s, %(repo)s, %(app_id)s,
        %(installation_id)s, %(labels)s, %(pool)s, %(image)s, %(runner_id)s, 'pending', %(pod_at)s,
        %(create_rv)s, %(pod_at)s, %(now)s)
    ON CONFLICT (name) DO NOTHING
    """

    async def _run(self, query: str, values: dict[str, Any]) -> bool:
        return (await self._connection.execute(query, values)).rowcount > 0

    async def _finish(self, name: str, now: datetime) -> bool:
        if not await self._run(self.FINISH, {"name": name, "now": now}):
            return False
        await note_event(self._connection, "worker.completed", now, worker=name)
        return True

    async def _intend(self, kill: Intend, now: datetime) -> bool:
        values = {"name": kill.name, "reason": kill.reason.value, "now": now}
        row = await (await self._connection.execute(self.INTEND, values)).fetchone()
        if row is None:
            return False
        detail = {"reason": kill.reason.value}
        await note_event(self._connection, "worker.ending", now, worker=kill.name, detail=detail)
        await count_failure(self._connection, row, kill.reason, own_fault=kill.own_fault, now=now)
        return True

    async def _adopt(self, change: Adopt, now: datetime) -> bool:
        worker = change.worker
        values = {
            "name": worker.name,
            "entity_id": worker.entity.id,
            "entity_name": worker.entity.name,
            "entity_type": worker.entity.type.value,
            "repo": worker.repo,
            "app_id": worker.app_id,
            "installation_id": worker.installation_id,
            "labels": list(worker.labels),
            "pool": worker.pool,
            "image": worker.image,
            "runner_id": worker.runner_id,
            "pod_at": change.pod_at,
            "create_rv": change.create_rv,
            "now": now,
        }
        if not await self._run(self.ADOPT, values):
            return False
        await note_event(self._connection, "worker.adopted", now, worker=worker.name)
        return True


def _log_refused(change: WorkerChange, error: Exception) -> None:
    log.error("worker.change_refused", change=type(change).__name__, error=type(error).__name__)
