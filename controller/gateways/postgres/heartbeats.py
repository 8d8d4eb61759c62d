"""Writing heartbeats and snapshots: by the leader, once a minute, a statement each."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from controller.domain.heartbeats import Beat, PoolSnapshot
from controller.domain.workers import Worker
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.workers import WorkerStore


class HeartbeatStore:
    """What a heartbeat reads and writes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._workers = WorkerStore(database)

    async def workers(self) -> list[Worker]:
        """The workers that may be seen."""
        return await self._workers.current()

    BEAT = """
    UPDATE workers w SET heartbeat_at = %(now)s, pod_phase = b.phase, runner_busy = b.busy,
        runner_status = CASE b.online WHEN true THEN 'online' WHEN false THEN 'offline' END
    FROM unnest(%(names)s::text[], %(phases)s::text[], %(online)s::boolean[], %(busy)s::boolean[])
        AS b (name, phase, online, busy)
    WHERE w.name = b.name AND w.status IN ('pending', 'running')
    """
    SNAPSHOT = """
    INSERT INTO board_snapshots (pool, at, slots, free, busy, held, unreachable, queue_depth, oldest_wait_seconds)
    SELECT %(pool)s, %(minute)s, %(slots)s, %(free)s, %(busy)s, %(held)s, %(unreachable)s, count(*),
        GREATEST(0, COALESCE(EXTRACT(EPOCH FROM %(now)s - min(created_at)), 0))::integer
    FROM jobs WHERE status = 'pending' AND mark IS NULL AND pool = %(pool)s
    ON CONFLICT (pool, at) DO NOTHING
    """

    async def beat(
        self, beats: Sequence[Beat], pools: Sequence[PoolSnapshot], epoch: int, now: datetime
    ) -> None:
        """Update the live workers in place and append a row for each pool."""
        columns = {
            "names": [beat.name for beat in beats],
            "phases": [beat.phase for beat in beats],
            "online": [beat.online for beat in beats],
            "busy": [beat.busy for beat in beats],
        }
        minute = now.replace(second=0, microsecond=0)
        async with self._database.leading(epoch) as connection, connection.cursor() as cursor:
            await cursor.execute(self.BEAT, {**columns, "now": now})
            rows = [{**asdict(pool), "minute": minute, "now": now} for pool in pools]
            await cursor.executemany(self.SNAPSHOT, rows)
