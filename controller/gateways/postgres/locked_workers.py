"""The workers table under its EXCLUSIVE lock: what the phases of sync_workers read and write.

Each change runs in a savepoint, so that one bad row does not undo the rest.
"""

from collections.abc import Collection, Mapping
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

    async def apply(self, change: WorkerChange, now: datetime) -> bool:
        """Write one change in a savepoint of its own; False if a row had moved on or would not take it."""
        try:
            async with self._connection.transaction():
                return await self._apply(change, now)
        except (psycopg.errors.IntegrityError, psycopg.errors.DataError) as error:
            log.error("worker.change_refused", change=type(change).__name__, error=type(error).__name__)
            return False

    async def _apply(self, change: WorkerChange, now: datetime) -> bool:
        match change:
            case SeePod():
                return await self._see_pod(change, now)
            case PodGone(name, at, look):
                await self._run(self.LOOK_SOON, {"name": name, "at": now + AFTER_POD_ENDED})
                if look:
                    await self._run(self.LOOK_NOW, {"name": name, "now": now})
                return await self._run(self.POD_GONE, {"name": name, "at": at, "now": now})
            case Finish(name):
                return await self._finish(name, now)
            case Fail(name, reason, info):
                return await fail_worker(self._connection, name, reason, info, own_fault=False, now=now)
            case Intend():
                return await self._intend(change, now)
            case ReadRunner():
                return await self._read_runner(change, now)
            case Adopt():
                return await self._adopt(change, now)
            case _:
                assert_never(change)

    SEE_POD = """
    UPDATE workers SET pod_at = COALESCE(pod_at, %(pod_at)s), create_rv = COALESCE(create_rv, %(create_rv)s),
        node = COALESCE(%(node)s, node), running_at = COALESCE(running_at, %(running_at)s),
        status = CASE WHEN status = 'pending' AND %(running_at)s::timestamptz IS NOT NULL THEN 'running'
                      ELSE status END,
        updated_at = %(now)s
    WHERE name = %(name)s
    """
    POD_GONE = """
    UPDATE workers SET pod_ended_at = %(at)s, updated_at = %(now)s WHERE name = %(name)s AND pod_ended_at IS NULL
    """
    LOOK_SOON = """
    UPDATE jobs SET poll_at = LEAST(poll_at, %(at)s) WHERE runner_name = %(name)s AND status = 'running'
    """
    LOOK_NOW = """
    UPDATE jobs j SET poll_at = %(now)s FROM workers w
    WHERE w.name = %(name)s AND j.status = 'pending' AND j.entity_id = w.entity_id AND j.labels = w.labels
      AND (w.repo IS NULL OR j.repo = w.repo)
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
    READ_RUNNER = """
    UPDATE workers SET runner_id = COALESCE(runner_id, %(runner_id)s),
        runner_version = COALESCE(%(version)s, runner_version),
        online_at = CASE WHEN %(online)s THEN COALESCE(online_at, %(now)s) ELSE online_at END,
        idle_since = CASE WHEN %(online)s AND NOT %(busy)s THEN COALESCE(idle_since, %(now)s) END,
        not_busy_since = CASE WHEN NOT %(busy)s THEN COALESCE(not_busy_since, %(now)s) END,
        read_at = %(now)s, updated_at = %(now)s
    WHERE name = %(name)s AND status IN ('pending', 'running')
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

    async def _see_pod(self, seen: SeePod, now: datetime) -> bool:
        values = {"pod_at": seen.pod_at, "create_rv": seen.create_rv, "node": seen.node}
        return await self._run(
            self.SEE_POD, {**values, "running_at": seen.running_at, "name": seen.name, "now": now}
        )

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

    async def _read_runner(self, seen: ReadRunner, now: datetime) -> bool:
        values = {"runner_id": seen.runner_id, "version": seen.version, "online": seen.online}
        return await self._run(self.READ_RUNNER, {**values, "busy": seen.busy, "name": seen.name, "now": now})

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
