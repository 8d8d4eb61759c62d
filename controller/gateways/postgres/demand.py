"""What demand_match reads: pending jobs, workers, holds and warm windows as of one moment.

In one snapshot, because a job that starts between two reads would count as demand while its worker is no supply any
more, and a second worker would be made for it.
"""

from datetime import datetime
from typing import Any

from controller.domain.constants import WARM_LINGERS
from controller.domain.holds import Hold, Holds, HoldScope, HoldWhy
from controller.domain.jobs import Job, Scope
from controller.domain.reasons import Reason
from controller.domain.schedules import Floor
from controller.domain.supply import Supply
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.jobs import JobStore
from controller.gateways.postgres.rows import WAITING_COLUMNS, entity_of, waiting_of, worker_of
from controller.gateways.postgres.workers import WorkerStore


class DemandStore:
    """Read-only. Remembers the jobs of the last reading, so that only those that changed are read again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: dict[int, tuple[int, Job]] = {}  # with the transaction that wrote the row last

    ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    PENDING = """
    SELECT job_id, xmin::text::bigint AS version FROM jobs WHERE status = 'pending' ORDER BY created_at, job_id
    """
    CHANGED = f"SELECT {WAITING_COLUMNS} FROM jobs WHERE job_id = ANY(%(job_ids)s)"
    RUNNING = "SELECT count(*) AS running FROM jobs WHERE status = 'running'"
    FLOORS = """
    SELECT o.id, o.schedule, o.arguments, o.warm_until, o.app_id, o.installation_id, o.entity_id, o.entity_name,
        o.entity_type, o.repo, f.failures, f.failed_at, f.last_reason
    FROM occurrences o LEFT JOIN LATERAL (
        SELECT count(*) AS failures, max(w.completed_at) AS failed_at,
            (array_agg(w.failure_reason ORDER BY w.completed_at DESC))[1] AS last_reason
        FROM workers w WHERE w.warm_for = o.id AND w.status = 'failed' AND w.completed_at > COALESCE((
            SELECT max(g.completed_at) FROM workers g WHERE g.warm_for = o.id AND g.status = 'completed'
        ), '-infinity')
    ) f ON true
    WHERE o.warm_until > %(since)s AND o.status IN ('running', 'completed') AND o.leased_until IS NULL
    """
    HOLDS = "SELECT scope, target, why, who, created_at, until, note, level FROM holds"

    async def read(self, now: datetime) -> Supply:
        """Everything, as of one moment."""
        async with self._database.transaction() as connection:
            await connection.execute(self.ONE_MOMENT)
            jobs = await self._pending(connection)
            workers = await (await connection.execute(WorkerStore.CURRENT)).fetchall()
            ended = {"since": now - WARM_LINGERS}
            running = await (await connection.execute(self.RUNNING)).fetchone()
            holds = await (await connection.execute(self.HOLDS)).fetchall()
            floors = await (await connection.execute(self.FLOORS, ended)).fetchall()
            installations = sorted(
                {job.installation_id for job in jobs} | {row["installation_id"] for row in floors}
            )
            cursor = await connection.execute(JobStore.SUSPENDED, {"ids": installations})
            suspended = frozenset(row["installation_id"] for row in await cursor.fetchall())
        return Supply(
            jobs=jobs,
            workers=tuple(worker_of(row) for row in workers),
            running=running["running"] if running else 0,
            holds=Holds.of(
                Hold(**{**row, "scope": HoldScope(row["scope"]), "why": HoldWhy(row["why"])}) for row in holds
            ),
            suspended=suspended,
            floors=tuple(_floor(row) for row in floors),
        )

    async def _pending(self, connection: Connection) -> tuple[Job, ...]:
        rows = await (await connection.execute(self.PENDING)).fetchall()
        versions = {row["job_id"]: row["version"] for row in rows}
        known = {job_id: seen for job_id, seen in self._jobs.items() if versions.get(job_id) == seen[0]}
        changed = [job_id for job_id in versions if job_id not in known]
        if changed:
            cursor = await connection.execute(self.CHANGED, {"job_ids": changed})
            for row in await cursor.fetchall():
                known[row["job_id"]] = versions[row["job_id"]], waiting_of(row)
        self._jobs = known
        return tuple(known[job_id][1] for job_id in versions)


def _floor(row: dict[str, Any]) -> Floor:
    return Floor(
        occurrence=row["id"],
        schedule=row["schedule"],
        scope=Scope(row["app_id"], row["installation_id"], entity_of(row), row["repo"]),
        labels=tuple(row["arguments"]["labels"]),
        runners=row["arguments"]["runners"],
        until=row["warm_until"],
        failures=row["failures"],
        failed_at=row["failed_at"],
        removed=row["last_reason"] in (Reason.RUNNER_REMOVED, Reason.RUNNER_IDLE),
    )
