"""What `pause`, `resume` and `drain` do: rows of `holds`, written in the transaction that fires them.

A schedule sets and lifts only holds of schedules: what a person has paused, a person resumes.
"""

from datetime import datetime
from typing import Any

from controller.domain.holds import HoldScope, HoldWhy
from controller.domain.schedules import Action, Definition, window_end
from controller.gateways.postgres.database import Connection
from controller.gateways.postgres.holds import VERBS, note_act

WHO = "schedule "

SET = """
INSERT INTO holds (scope, target, why, until, who, note, created_at)
VALUES (%(scope)s, %(target)s, %(why)s, %(until)s, %(who)s, %(note)s, %(now)s)
ON CONFLICT (scope, target, why) DO UPDATE SET until = EXCLUDED.until, who = EXCLUDED.who, note = EXCLUDED.note,
    created_at = EXCLUDED.created_at
WHERE starts_with(holds.who, %(mark)s) OR holds.until <= %(now)s
"""
LIFT = """
DELETE FROM holds WHERE scope = %(scope)s AND target = %(target)s AND why = %(why)s
    AND (starts_with(who, %(mark)s) OR until <= %(now)s)
"""


async def apply_hold(connection: Connection, definition: Definition, due: datetime, now: datetime) -> None:
    """Hold or release what the schedule names; a hold whose time is over already is not set."""
    until = window_end(definition.arguments, due)
    scope, target = _target(definition)
    why = HoldWhy.DRAIN if scope is HoldScope.BOARD else HoldWhy.PAUSE
    values: dict[str, Any] = {
        "scope": scope.value,
        "target": target,
        "why": why.value,
        "until": until,
        "who": f"{WHO}{definition.name}",
        "note": f"set by the schedule {definition.name}",
        "mark": WHO,
        "now": now,
    }
    if definition.action is Action.RESUME:
        changed = await connection.execute(LIFT, values)
    elif until is None or until > now:
        changed = await connection.execute(SET, values)
    else:
        return
    if changed.rowcount:
        verb = "resumed" if definition.action is Action.RESUME else VERBS[why]
        detail = {"scope": scope.value, "target": target, "why": why.value, "note": values["note"]}
        detail["until"] = until.isoformat() if until else None
        await note_act(connection, f"{scope.value}.{verb}", "schedule", values["who"], now, detail=detail)


def _target(definition: Definition) -> tuple[HoldScope, str]:
    given = definition.arguments
    if definition.action is Action.DRAIN:
        return HoldScope.BOARD, given["board"]
    if "pool" in given:
        return HoldScope.POOL, given["pool"]
    return HoldScope.ENTITY, given["entity"].lower()
