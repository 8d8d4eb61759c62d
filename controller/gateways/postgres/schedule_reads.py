"""Schedules and occurrences as people look at them: read on the connections of the pages, never on the loop's."""

from datetime import datetime, timedelta
from typing import Any

from controller.domain.pages import Listing, Slice, Window
from controller.domain.schedules import Occurrence, ScheduleLine
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.reading import reading
from controller.gateways.postgres.schedule_rows import (
    OCCURRENCE_COLUMNS,
    SCHEDULE_COLUMNS,
    occurrence_of,
    readable,
)

AHEAD = timedelta(days=1)  # no clock is so far behind another one that wrote the time an occurrence was due


class ScheduleReads:
    """What the page, its twin, the queue and the API show of schedules; each list has an end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    ALL = f"SELECT {SCHEDULE_COLUMNS} FROM schedules ORDER BY name"
    # One step along an index for each schedule, however many occurrences there have been.
    LAST = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM unnest(%(names)s::text[]) AS known (name) CROSS JOIN LATERAL (
        SELECT * FROM occurrences WHERE schedule = known.name ORDER BY due_at DESC LIMIT 1
    ) AS newest
    """

    async def lines(self) -> list[ScheduleLine]:
        """Every schedule with its newest occurrence."""
        async with reading(self._database) as connection:
            found = await (await connection.execute(self.ALL)).fetchall()
            schedules = [schedule for row in found if (schedule := readable(row)) is not None]
            names = {"names": [schedule.name for schedule in schedules]}
            rows = await (await connection.execute(self.LAST, names, prepare=False)).fetchall()
        last = {row["schedule"]: occurrence_of(row) for row in rows}
        return [ScheduleLine(schedule, last.get(schedule.name)) for schedule in schedules]

    # Nothing is written down before it is due, so the index by which it is ordered ends the search too.
    NEWEST = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM occurrences
    WHERE due_at >= %(start)s AND due_at < %(end)s AND created_at >= %(start)s - %(ahead)s::interval
    ORDER BY created_at DESC, id DESC OFFSET %(offset)s LIMIT %(limit)s
    """

    async def occurrences(self, window: Window, part: Slice) -> Listing[Occurrence]:
        """What became of the times of all schedules, newest first."""
        values: dict[str, Any] = {"start": window.start, "end": window.end, "ahead": AHEAD}
        values |= {"offset": part.offset, "limit": part.per_page + 1}
        async with reading(self._database) as connection:
            rows = await (await connection.execute(self.NEWEST, values, prepare=False)).fetchall()
        return Listing.cut([occurrence_of(row) for row in rows], part.per_page)

    # Each half walks an index of its own from the newest on.
    WAITING = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM (
        (SELECT * FROM occurrences WHERE status IN ('pending', 'running')
         ORDER BY due_at DESC, id DESC LIMIT %(limit)s)
        UNION ALL
        (SELECT * FROM occurrences WHERE status = 'failed' AND due_at > %(since)s
         ORDER BY due_at DESC, id DESC LIMIT %(limit)s)
    ) AS found ORDER BY due_at DESC, id DESC LIMIT %(limit)s
    """

    async def waiting(self, since: datetime, limit: int) -> list[Occurrence]:
        """What waits and runs, and what failed since then."""
        async with reading(self._database) as connection:
            cursor = await connection.execute(self.WAITING, {"since": since, "limit": limit}, prepare=False)
            return [occurrence_of(row) for row in await cursor.fetchall()]
