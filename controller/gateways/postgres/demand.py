"""What demand_match reads: pending jobs, workers and holds as of one moment.

In one snapshot, because a job that starts between two reads would count as demand while its worker is no supply any
more, and a second worker would be made for it.
"""

from controller.domain.holds import Hold, Holds, HoldScope, HoldWhy
from controller.domain.jobs import Job
from controller.domain.supply import Supply
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.jobs import JobStore
from controller.gateways.postgres.rows import WAITING_COLUMNS, waiting_of, worker_of
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
    HOLDS = "SELECT scope, target, why, who, created_at, until, note, level FROM holds"

    async def read(self) -> Supply:
        """Everything, as of one moment."""
        async with self._database.transaction() as connection:
            await connection.execute(self.ONE_MOMENT)
            jobs = await self._pending(connection)
            workers = await (await connection.execute(WorkerStore.CURRENT)).fetchall()
            running = await (await connection.execute(self.RUNNING)).fetchone()
            holds = await (await connection.execute(self.HOLDS)).fetchall()
            installations = sorted({job.installation_id for job in jobs})
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
