"""How workers ended lately, and the breaker's rows in `holds`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controller.domain.endings import Ending
from controller.domain.holds import Hold
from controller.domain.reasons import EXPLANATIONS, Reason
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.events import note_event

NEWEST = (
    100  # failures of one board, or of one pool with one image; past that a run of them is held no longer
)
LOOKED_BACK = 2_000  # of a pool's completed workers, for one of the image that it has now
LOOKED_BACK_ON_BOARD = 10
SUSPECT = [reason.value for reason in Reason if EXPLANATIONS[reason].trips_breaker]
REFUSED = [reason.value for reason in Reason if EXPLANATIONS[reason].names_image]


class BreakerStore:
    """What the breaker reads and writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Whoever was online or has a job has shown that image and board work: nobody waits for it to end. Failures
    # count unless they are a spare's or were forgiven by hand; who resumes one pool says that its image is mended.
    # A success ends a run of failures, so of those only the newest of each pool is read, and the newest of each
    # board that has failures: neither a large fleet nor a busy pool makes what happened elsewhere forgotten.
    # BETWEEN and not `=`, so that the order is that of the index by pool: for a pool with little to do the planner
    # would read what all pools have completed.
    ENDINGS = """
    WITH asked AS (
        SELECT * FROM unnest(%(pools)s::text[], %(images)s::text[]) AS a (pool, image)
    ), failed AS (
        SELECT w.name, w.pool, w.image, w.node, w.completed_at AS at, w.failure_reason,
            w.online_at IS NOT NULL OR b.has_job IS NOT NULL AS proven, COALESCE(w.image = a.image, true) AS current,
            row_number() OVER (PARTITION BY w.pool, w.image ORDER BY w.completed_at DESC) AS of_pool,
            row_number() OVER (PARTITION BY w.node, COALESCE(w.image = a.image, true)
                ORDER BY w.completed_at DESC) AS of_board
        FROM workers w LEFT JOIN asked a ON a.pool = w.pool LEFT JOIN LATERAL (
            SELECT true AS has_job FROM jobs j
            WHERE j.runner_name = w.name AND w.online_at IS NULL AND w.pod_at IS NOT NULL LIMIT 1) b ON true
        WHERE w.status = 'failed' AND w.completed_at > %(since)s
            AND (w.online_at IS NOT NULL OR b.has_job OR w.failure_reason = ANY(%(suspect)s))
            AND (w.online_at IS NOT NULL OR w.warm_for IS NULL AND NOT EXISTS (
                SELECT FROM pardons p WHERE p.at >= w.completed_at
                    AND ((p.scope, p.target) IN (('pool', w.pool), ('board', w.node))
                        OR p.scope = 'pool' AND w.failure_reason = ANY(%(refused)s)
                            AND p.target IN (SELECT pool FROM asked WHERE image = w.image))))
    )
    SELECT name, pool, image, node, at, failure_reason, proven FROM failed
    WHERE of_pool <= %(newest)s OR of_board <= %(newest)s
    UNION ALL
    SELECT done.name, a.pool, a.image, done.node, done.at, NULL, true
    FROM asked a CROSS JOIN LATERAL (
        SELECT name, node, at FROM (
            SELECT w.name, w.pool, w.image, w.node, w.completed_at AS at FROM workers w
            WHERE w.status = 'completed' AND w.pool BETWEEN a.pool AND a.pool AND w.completed_at > %(since)s
            ORDER BY w.pool, w.completed_at DESC LIMIT %(looked_back)s) newest
        WHERE image = a.image ORDER BY newest.pool, at DESC LIMIT 1) done
    UNION ALL
    SELECT done.name, done.pool, done.image, f.node, done.completed_at, NULL, true
    FROM (SELECT DISTINCT node FROM failed WHERE node IS NOT NULL AND current AND NOT proven) f
    CROSS JOIN LATERAL (
        SELECT newest.* FROM (
            SELECT w.name, w.pool, w.image, w.completed_at FROM workers w
            WHERE w.node = f.node AND w.status = 'completed' AND w.pod_ended_at > %(since)s
            ORDER BY w.pod_ended_at DESC LIMIT %(of_board)s) newest LEFT JOIN asked a ON a.pool = newest.pool
        WHERE COALESCE(newest.image = a.image, true) ORDER BY newest.completed_at DESC LIMIT 1) done
    UNION ALL
    SELECT w.name, w.pool, w.image, w.node, COALESCE(w.online_at, b.started_at), NULL, true
    FROM workers w LEFT JOIN LATERAL (
        SELECT j.started_at FROM jobs j WHERE j.runner_name = w.name ORDER BY j.started_at LIMIT 1) b ON true
    WHERE w.status IN ('pending', 'running') AND COALESCE(w.online_at, b.started_at) IS NOT NULL
    ORDER BY at DESC
    """

    async def endings(self, since: datetime, images: Mapping[str, str]) -> list[Ending]:
        """Of the workers that ended since then, or live and work, those that say how boards and pools do.

        Newest first; `images` are those that the pools have now.
        """
        values = {"since": since, "pools": list(images), "images": list(images.values())}
        limits: dict[str, object] = {"suspect": SUSPECT, "refused": REFUSED, "newest": NEWEST}
        limits |= {"looked_back": LOOKED_BACK, "of_board": LOOKED_BACK_ON_BOARD}
        rows = await self._database.fetch(self.ENDINGS, values | limits)
        return [_ending(row) for row in rows]

    KNOWN = "SELECT scope, target, until FROM holds WHERE why = 'breaker'"
    SET = """
    INSERT INTO holds (scope, target, why, until, who, note, level, created_at)
    VALUES (%(scope)s, %(target)s, 'breaker', %(until)s, %(who)s, %(note)s, %(level)s, %(created_at)s)
    ON CONFLICT (scope, target, why) DO UPDATE SET until = EXCLUDED.until, note = EXCLUDED.note,
        level = EXCLUDED.level
    """
    LIFT = "DELETE FROM holds WHERE scope = %(scope)s AND target = %(target)s AND why = 'breaker'"

    async def keep(self, holds: Sequence[Hold], epoch: int, now: datetime) -> None:
        """Make the breaker's holds exactly these; what opens and closes leaves an event."""
        async with self._database.leading(epoch) as connection:
            rows = await (await connection.execute(self.KNOWN)).fetchall()
            known = {(row["scope"], row["target"]): row["until"] for row in rows}
            wanted = {(hold.scope.value, hold.target): hold for hold in holds}
            for key, hold in wanted.items():
                if known.get(key) != hold.until:
                    await self._set(connection, hold, now)
            for scope, target in known.keys() - wanted.keys():
                await connection.execute(self.LIFT, {"scope": scope, "target": target})
                detail = {"scope": scope, "target": target}
                await note_event(connection, "breaker.closed", now, detail=detail)

    async def _set(self, connection: Connection, hold: Hold, now: datetime) -> None:
        await connection.execute(
            self.SET,
            {
                "scope": hold.scope.value,
                "target": hold.target,
                "until": hold.until,
                "who": hold.who,
                "note": hold.note,
                "level": hold.level,
                "created_at": hold.created_at,
            },
        )
        await note_event(connection, "breaker.opened", now, detail=hold.detail)


def _ending(row: dict[str, Any]) -> Ending:
    return Ending(
        worker=row["name"],
        pool=row["pool"],
        node=row["node"],
        at=row["at"],
        reason=Reason(row["failure_reason"]) if row["failure_reason"] else None,
        proven=row["proven"],
        image=row["image"],
    )
