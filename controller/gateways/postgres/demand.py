"""What demand_match reads: pending jobs, workers and holds as of one moment.

In one snapshot, because a job that starts between two reads would count as demand while its worker is no supply any
more, and a second worker would be made for it.
"""

from controller.domain.holds import Hold, Holds, HoldScope, HoldWhy
from controller.domain.supply import Supply
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.jobs import JobStore
from controller.gateways.postgres.rows import job_of, worker_of
from controller.gateways.postgres.workers import WorkerStore


class DemandStore:
    """Read-only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    RUNNING = "SELECT count(*) AS running FROM jobs WHERE status = 'running'"
    HOLDS = "SELECT scope, target, why, who, created_at, until, note, level FROM holds"

    async def read(self) -> Supply:
        """Everything, as of one moment."""
        async with self._database.transaction() as connection:
            await connection.execute(self.ONE_MOMENT)
            jobs = await (await connection.execute(JobStore.PENDING)).fetchall()
            workers = await (await connection.execute(WorkerStore.CURRENT)).fetchall()
            running = await (await connection.execute(self.RUNNING)).fetchone()
            holds = await (await connection.execute(self.HOLDS)).fetchall()
            installations = sorted({row["installation_id"] for row in jobs})
            cursor = await connection.execute(JobStore.SUSPENDED, {"ids": installations})
            suspended = frozenset(row["installation_id"] for row in await cursor.fetchall())
        return Supply(
            jobs=tuple(job_of(row) for row in jobs),
            workers=tuple(worker_of(row) for row in workers),
            running=running["running"] if running else 0,
            holds=Holds.of(
                Hold(**{**row, "scope": HoldScope(row["scope"]), "why": HoldWhy(row["why"])}) for row in holds
            ),
            suspended=suspended,
        )
