"""How workers ended lately, and the breaker's rows in `holds`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controller.domain.endings import Ending
from controller.domain.holds import Hold
from controller.domain.reasons import Reason
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.events import note_event

AT_MOST = 2_000  # endings


class BreakerStore:
    """What the breaker reads and writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Whoever was online or has a job has shown that image and board work: nobody waits for it to end. Failures
    # count unless they are a spare's or were forgiven by hand.
    ENDINGS = """
    SELECT w.name, w.pool, w.image, w.node, w.completed_at AS at, w.failure_reason,
        (w.online_at IS NOT NULL OR EXISTS (SELECT 1 FROM jobs j WHERE j.runner_name = w.name)) AS proven
    FROM workers w
    WHERE w.status IN ('completed', 'failed') AND w.completed_at > %(since)s
        AND (w.status = 'completed' OR w.online_at IS NOT NULL OR (w.warm_for IS NULL
            AND NOT EXISTS (SELECT 1 FROM pardons p WHERE p.at >= w.completed_at
                AND (p.scope, p.target) IN (('pool', w.pool), ('board', w.node)))))
    UNION ALL
    SELECT w.name, w.pool, w.image, w.node, COALESCE(w.online_at, b.started_at), NULL, true
    FROM workers w LEFT JOIN LATERAL (
        SELECT j.started_at FROM jobs j WHERE j.runner_name = w.name ORDER BY j.started_at LIMIT 1) b ON true
    WHERE w.status IN ('pending', 'running') AND COALESCE(w.online_at, b.started_at) IS NOT NULL
    ORDER BY at DESC LIMIT %(limit)s
    """

    async def endings(self, since: datetime) -> list[Ending]:
        """The workers that ended since then, and those that live and work, newest first."""
        rows = await self._database.fetch(self.ENDINGS, {"since": since, "limit": AT_MOST})
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
