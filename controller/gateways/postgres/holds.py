"""Setting and lifting holds by hand or by schedule, each with its event, in the transaction of the caller.

Resuming a board or pool also forgives what its breaker counted: whoever resumes it says that it is mended.
"""

from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from controller.domain.holds import Hold, HoldScope, HoldWhy
from controller.gateways.postgres.database import Connection

SET = """
INSERT INTO holds (scope, target, why, until, who, note, created_at)
VALUES (%(scope)s, %(target)s, %(why)s, %(until)s, %(who)s, %(note)s, %(created_at)s)
ON CONFLICT (scope, target, why) DO UPDATE SET until = EXCLUDED.until, who = EXCLUDED.who,
    note = EXCLUDED.note, created_at = EXCLUDED.created_at
"""
LIFT = """
DELETE FROM holds WHERE scope = %(scope)s AND target = %(target)s AND why = ANY(%(why)s)
"""
PARDON = """
INSERT INTO pardons (scope, target, at) VALUES (%(scope)s, %(target)s, %(now)s)
ON CONFLICT (scope, target) DO UPDATE SET at = EXCLUDED.at
"""
ON_TARGET = """
SELECT scope, target, why, who, created_at, until, note, level FROM holds
WHERE scope = %(scope)s AND target = %(target)s AND (until IS NULL OR until > %(now)s)
ORDER BY why
"""
NOTE = """
INSERT INTO events (at, source, kind, job_id, entity_id, who, detail)
VALUES (%(now)s, %(source)s, %(kind)s, %(job_id)s, %(entity_id)s, %(who)s, %(detail)s)
"""
LIFTED_BY_HAND = [HoldWhy.PAUSE.value, HoldWhy.DRAIN.value, HoldWhy.BREAKER.value]
VERBS = {HoldWhy.PAUSE: "paused", HoldWhy.DRAIN: "drained"}


async def set_hold(connection: Connection, hold: Hold, source: str, now: datetime) -> None:
    """Hold a pool, entity or board; a second time changes until when, and why."""
    await connection.execute(
        SET,
        {
            "scope": hold.scope.value,
            "target": hold.target,
            "why": hold.why.value,
            "until": hold.until,
            "who": hold.who,
            "note": hold.note,
            "created_at": hold.created_at,
        },
    )
    kind = f"{hold.scope.value}.{VERBS.get(hold.why, 'held')}"
    await note_act(connection, kind, source, hold.who, now, detail=hold.detail)


async def lift_hold(
    connection: Connection,
    scope: HoldScope,
    target: str,
    who: str,
    source: str,
    now: datetime,
    note: str = "",
) -> None:
    """Let a pool, entity or board go on; what the settings themselves hold (quiet hours) stays held."""
    values: dict[str, Any] = {"scope": scope.value, "target": target, "now": now}
    await connection.execute(LIFT, {**values, "why": LIFTED_BY_HAND})
    if scope is not HoldScope.ENTITY:
        await connection.execute(PARDON, values)
    detail = {"scope": scope.value, "target": target, "note": note}
    await note_act(connection, f"{scope.value}.resumed", source, who, now, detail=detail)


async def holds_on(connection: Connection, scope: HoldScope, target: str, now: datetime) -> tuple[Hold, ...]:
    """The holds in force on one target."""
    cursor = await connection.execute(ON_TARGET, {"scope": scope.value, "target": target, "now": now})
    return tuple(hold_of(row) for row in await cursor.fetchall())


def hold_of(row: dict[str, Any]) -> Hold:
    """A row of `holds`."""
    return Hold(**{**row, "scope": HoldScope(row["scope"]), "why": HoldWhy(row["why"])})


async def note_act(
    connection: Connection,
    kind: str,
    source: str,
    who: str,
    now: datetime,
    *,
    job_id: int | None = None,
    entity_id: int | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Append the event of something that somebody did."""
    await connection.execute(
        NOTE,
        {
            "now": now,
            "source": source,
            "kind": kind,
            "job_id": job_id,
            "entity_id": entity_id,
            "who": who,
            "detail": Jsonb(detail or {}),
        },
    )
