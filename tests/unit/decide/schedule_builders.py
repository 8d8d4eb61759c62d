"""Schedules with defaults; a test names what it is about."""

from datetime import UTC, datetime, time
from typing import Any

from controller.decide.occurrences import judge_due
from controller.domain.firings import Firing, Pressure
from controller.domain.schedules import Action, CatchUp, Definition, Owner, Planned, QuietHours, Schedule

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
NIGHT = QuietHours(time(22, 0), time(6, 0), "UTC")
FREE = Pressure()
# zone, local day of the spring night, local day of the autumn night, first missing and first doubled local time
NIGHTS = [
    ("Europe/Berlin", "2026-03-29", "2026-10-25", "02:30", "02:30"),
    ("America/New_York", "2026-03-08", "2026-11-01", "02:30", "01:30"),
    ("Australia/Lord_Howe", "2026-10-04", "2026-04-05", "02:15", "01:45"),  # half an hour only
    ("America/Santiago", "2026-09-06", "2026-04-05", "00:30", "23:30"),  # at midnight
    ("Pacific/Auckland", "2026-09-27", "2026-04-05", "02:30", "02:30"),
]


def at(text: str) -> datetime:
    """A moment in UTC: `2026-03-02 08:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def a_definition(
    spec: str = "0 8 * * *", kind: str = "cron", action: Action = Action.PAUSE, **changes: Any
) -> Definition:
    """A cron schedule that pauses a pool."""
    return Definition("it", kind, spec, action, {"pool": "rv1"}, **changes)


def due(
    planned: datetime | Planned | None,
    now: datetime,
    pressure: Pressure = FREE,
    chance: float = 0.0,
    **changes: Any,
) -> Firing:
    """What becomes of a schedule that was planned for then."""
    enabled = changes.pop("enabled", True)
    definition = a_definition(**changes)
    when = Planned(planned, planned) if isinstance(planned, datetime) else planned
    return judge_due(Schedule(definition, Owner.API, enabled, when), pressure, now, chance)


CAPPED = CatchUp.RUN_ALL_CAPPED
