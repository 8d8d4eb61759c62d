"""Between rows of `schedules` and `occurrences` and the values of the domain, and their events."""

from datetime import datetime, time
from typing import Any

from psycopg.types.json import Jsonb

from controller.domain.controls import By
from controller.domain.schedules import (
    Action,
    CatchUp,
    Definition,
    Occurrence,
    OccurrenceStatus,
    Owner,
    Planned,
    QuietHours,
    Schedule,
)
from controller.gateways.postgres.database import Connection

SCHEDULE_COLUMNS = """
    name, owner, enabled, type, spec, timezone, action, arguments, catch_up, catch_up_cap, quiet_hours, jitter,
    priority, next_due_at, next_run_at, last_run_at, last_error, file_enabled
"""

OCCURRENCE_COLUMNS = """
    id, schedule, due_at, action, arguments, status, created_at, reason, manual, caught_up, slots, attempts,
    max_attempts, retry_after, leased_until, sent_at, last_sent_at, runs_before, run_id, run_ended_at, warm_until,
    result, error, started_at, completed_at
"""


def schedule_of(row: dict[str, Any]) -> Schedule:
    """A row selected with SCHEDULE_COLUMNS."""
    definition = Definition(
        name=row["name"],
        type=row["type"],
        spec=row["spec"],
        action=Action(row["action"]),
        arguments=row["arguments"],
        timezone=row["timezone"],
        catch_up=CatchUp(row["catch_up"]),
        catch_up_cap=row["catch_up_cap"],
        quiet_hours=_hours(row["quiet_hours"]),
        jitter=row["jitter"],
        priority=row["priority"],
        enabled=row["enabled"],
    )
    due, run_at = row["next_due_at"], row["next_run_at"]
    return Schedule(
        definition=definition,
        owner=Owner(row["owner"]),
        enabled=row["enabled"],
        planned=Planned(due, run_at) if due is not None and run_at is not None else None,
        last_run_at=row["last_run_at"],
        last_error=row["last_error"],
        in_file=row["file_enabled"] is not None,
    )


def readable(row: dict[str, Any]) -> Schedule | None:
    """A row selected with SCHEDULE_COLUMNS; None if only a newer program can read it."""
    try:
        return schedule_of(row)
    except ValueError:
        return None


def definition_values(definition: Definition) -> dict[str, Any]:
    """A definition as the parameters of a statement."""
    hours = definition.quiet_hours
    quiet = (
        {
            "from": hours.start.isoformat("minutes"),
            "to": hours.end.isoformat("minutes"),
            "timezone": hours.timezone,
        }
        if hours
        else None
    )
    return {
        "name": definition.name,
        "type": definition.type,
        "spec": definition.spec,
        "timezone": definition.timezone,
        "action": definition.action.value,
        "arguments": Jsonb(dict(definition.arguments)),
        "catch_up": definition.catch_up.value,
        "catch_up_cap": definition.catch_up_cap,
        "quiet_hours": Jsonb(quiet) if quiet else None,
        "jitter": definition.jitter,
        "priority": definition.priority,
    }


def planned_values(planned: Planned | None) -> dict[str, Any]:
    """The next time as the parameters of a statement."""
    return {"due": planned.due if planned else None, "run_at": planned.run_at if planned else None}


def occurrence_of(row: dict[str, Any]) -> Occurrence:
    """A row selected with OCCURRENCE_COLUMNS."""
    values = {**row, "action": Action(row["action"]), "status": OccurrenceStatus(row["status"])}
    return Occurrence(**values)


def _hours(stored: dict[str, str] | None) -> QuietHours | None:
    if stored is None:
        return None
    return QuietHours(
        time.fromisoformat(stored["from"]), time.fromisoformat(stored["to"]), stored["timezone"]
    )


NOTE = """
INSERT INTO events (at, source, kind, outcome, who, detail)
VALUES (%(now)s, %(source)s, %(kind)s, %(outcome)s, %(who)s, %(detail)s)
"""


async def note_schedule(
    connection: Connection,
    kind: str,
    schedule: str,
    now: datetime,
    *,
    outcome: str | None = None,
    by: By | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Append what a schedule did, or what somebody did to it."""
    values = {
        "now": now,
        "source": "admin" if by else "schedule",
        "kind": kind,
        "outcome": outcome,
        "who": by.who if by else None,
        "detail": Jsonb({"schedule": schedule, **(detail or {}), **({"note": by.note} if by else {})}),
    }
    await connection.execute(NOTE, values)
