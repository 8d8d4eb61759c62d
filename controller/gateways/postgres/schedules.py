"""Schedules: kept in step with the file, claimed when due, and fired in one transaction.

    claim (SKIP LOCKED) ─▶ decide ─▶ occurrence under its unique key ─▶ action recorded ─▶ next time ─▶ commit

A process that dies anywhere on the way leaves the schedule as it was: due, and not fired.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from controller.decide.slots import read_moment
from controller.domain.constants import OCCURRENCES_OPEN
from controller.domain.firings import Firing, Pressure
from controller.domain.schedules import (
    Definition,
    OccurrenceStatus,
    Owner,
    Planned,
    Schedule,
    ScheduleSkip,
    ScheduleType,
)
from controller.errors import clip
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.schedule_effects import apply_hold
from controller.gateways.postgres.schedule_rows import (
    SCHEDULE_COLUMNS,
    definition_values,
    note_schedule,
    planned_values,
    readable,
    schedule_of,
)


class ClaimedSchedule:
    """A due schedule that this transaction alone holds."""

    def __init__(self, connection: Connection, schedule: Schedule) -> None:
        self._connection = connection
        self.schedule = schedule

    PRESSURE = """
    SELECT count(*) AS open, count(*) FILTER (WHERE schedule = %(schedule)s) AS own FROM occurrences
    WHERE status IN ('pending', 'running')
    """

    async def pressure(self) -> Pressure:
        """What is under way already."""
        values = {"schedule": self.schedule.name}
        row = await (await self._connection.execute(self.PRESSURE, values)).fetchone()
        assert row is not None  # noqa: S101 - a count always has a row
        return Pressure(predecessor=row["own"] > 0, full=row["open"] >= OCCURRENCES_OPEN)

    INSERT = """
    INSERT INTO occurrences (schedule, due_at, action, arguments, priority, status, reason, manual, caught_up, slots,
        created_at, started_at, completed_at, result)
    VALUES (%(schedule)s, %(due)s, %(action)s, %(arguments)s, %(priority)s, %(status)s, %(reason)s, %(manual)s,
        %(caught_up)s, %(slots)s, %(now)s, %(done)s, %(done)s, %(result)s)
    ON CONFLICT (schedule, due_at) DO UPDATE SET action = EXCLUDED.action, arguments = EXCLUDED.arguments,
        priority = EXCLUDED.priority, status = EXCLUDED.status, reason = EXCLUDED.reason,
        manual = EXCLUDED.manual, slots = EXCLUDED.slots, caught_up = EXCLUDED.caught_up,
        created_at = EXCLUDED.created_at, started_at = EXCLUDED.started_at, completed_at = EXCLUDED.completed_at,
        result = EXCLUDED.result
    WHERE occurrences.status = 'missed' AND EXCLUDED.status <> 'missed' RETURNING id
    """
    ADVANCE = """
    UPDATE schedules SET next_due_at = %(due)s, next_run_at = %(run_at)s, enabled = enabled AND NOT %(disable)s,
        last_run_at = CASE WHEN %(ran)s THEN %(now)s ELSE last_run_at END,
        last_error = CASE WHEN %(ran)s THEN NULL ELSE last_error END, updated_at = %(now)s
    WHERE name = %(name)s
    """

    async def record(self, firing: Firing, now: datetime, *, manual: bool = False) -> list[OccurrenceStatus]:
        """Write what was decided and advance; the outcomes that are final already."""
        outcomes: list[OccurrenceStatus] = []
        ran = False
        for due in firing.fire:
            done = await self._fire(firing, due, now, manual)
            ran = ran or done is not None
            if done is OccurrenceStatus.COMPLETED:
                outcomes.append(done)
        for due in firing.skipped:
            if await self._skip(firing, due, now):
                outcomes.append(OccurrenceStatus.SKIPPED)
        outcomes.extend(await self._miss(firing, now))
        if firing.reason is not None and not firing.skipped:
            await note_schedule(
                self._connection, "schedule.skipped", self.schedule.name, now, outcome=firing.reason.value
            )
        advance = {"name": self.schedule.name, "disable": firing.disable, "ran": ran, "now": now}
        await self._connection.execute(self.ADVANCE, advance | planned_values(firing.planned))
        return outcomes

    async def _fire(
        self, firing: Firing, due: datetime, now: datetime, manual: bool
    ) -> OccurrenceStatus | None:
        """Insert the occurrence and, if it needs nothing from outside, do what it says."""
        definition = self.schedule.definition
        inside = not definition.action.outside
        status = OccurrenceStatus.COMPLETED if inside else OccurrenceStatus.PENDING
        more = {"slots": firing.stands_for, "caught_up": len(firing.fire) > 1, "manual": manual}
        if not await self._insert(due, status, now, done=now if inside else None, **more):
            return None
        if inside:
            await apply_hold(self._connection, definition, due, now)
        detail = {"due": due.isoformat(), "action": definition.action.value, "slots": firing.stands_for}
        kind = "schedule.fired" if firing.stands_for == 1 else "schedule.caught_up"
        await note_schedule(self._connection, kind, self.schedule.name, now, detail=detail)
        return status

    async def _skip(self, firing: Firing, due: datetime, now: datetime) -> bool:
        reason = firing.reason.value if firing.reason else None
        status = OccurrenceStatus.SKIPPED
        new = await self._insert(due, status, now, done=now, reason=reason, slots=firing.stands_for)
        if new:
            detail = {"due": due.isoformat(), "slots": firing.stands_for}
            await note_schedule(
                self._connection, "schedule.skipped", self.schedule.name, now, outcome=reason, detail=detail
            )
        return new

    async def _miss(self, firing: Firing, now: datetime) -> list[OccurrenceStatus]:
        outcomes = []
        for due in firing.missed:
            if await self._insert(due, OccurrenceStatus.MISSED, now, done=now):
                outcomes.append(OccurrenceStatus.MISSED)
                detail = {"due": due.isoformat()}
                await note_schedule(
                    self._connection, "schedule.missed", self.schedule.name, now, detail=detail
                )
        if firing.missed_besides:
            more = {"slots": firing.missed_besides, "at_least": not firing.counted}
            await note_schedule(self._connection, "schedule.missed", self.schedule.name, now, detail=more)
        return outcomes

    async def _insert(
        self, due: datetime, status: OccurrenceStatus, now: datetime, *, done: datetime | None, **more: Any
    ) -> bool:
        """Whether the occurrence is new: its key is the schedule and the time.

        One that a clock set ahead called missed comes all the same when its time does.
        """
        definition = self.schedule.definition
        values = {"reason": None, "manual": False, "caught_up": False, "slots": 1, "result": None} | more
        values |= {
            "schedule": definition.name,
            "due": due,
            "action": definition.action.value,
            "arguments": Jsonb(dict(definition.arguments)),
            "priority": definition.priority,
            "status": status.value,
            "now": now,
            "done": done,
        }
        return await (await self._connection.execute(self.INSERT, values)).fetchone() is not None


# The loop closes a window whose time is over; one that has yet to open never does.
END_WINDOWS = """
UPDATE occurrences SET warm_until = %(now)s
WHERE schedule = %(name)s AND status = 'running' AND warm_until > %(now)s
"""
# What has not been asked of GitHub yet is not asked any more. Whoever holds one finds its lease gone and writes
# nothing, neither that a window is open nor that a request is about to be sent. A prune under way just ends.
TAKE_BACK = """
UPDATE occurrences SET status = 'skipped', reason = 'disabled', completed_at = %(now)s, leased_until = NULL
WHERE schedule = %(name)s AND sent_at IS NULL AND result IS NULL
    AND (status = 'pending' OR (status = 'running' AND leased_until IS NOT NULL AND action <> 'prune'))
RETURNING due_at
"""
# An unanswered request may have started a run: it is looked for still, as after the last attempt, but not sent again.
ONLY_LOOK = """
UPDATE occurrences SET attempts = GREATEST(attempts, max_attempts + (status = 'running')::integer)
WHERE schedule = %(name)s AND status IN ('pending', 'running') AND sent_at IS NOT NULL AND result IS NULL
"""


async def stop_work_of(connection: Connection, name: str, now: datetime) -> None:
    """A schedule that is switched off or gone keeps no runners warm and starts nothing that it had put off."""
    values = {"name": name, "now": now}
    for statement in (END_WINDOWS, ONLY_LOOK):
        await connection.execute(statement, values)
    for row in await (await connection.execute(TAKE_BACK, values)).fetchall():
        detail, reason = {"due": row["due_at"].isoformat()}, ScheduleSkip.DISABLED.value
        await note_schedule(connection, "schedule.skipped", name, now, outcome=reason, detail=detail)


class ScheduleStore:
    """The schedules table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    DUE = f"""
    SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE enabled AND next_run_at <= %(now)s
    ORDER BY next_run_at, name LIMIT 1 FOR UPDATE SKIP LOCKED
    """

    @asynccontextmanager
    async def claimed(self, epoch: int, now: datetime) -> AsyncIterator[ClaimedSchedule | None]:
        """One transaction that holds the schedule that is due longest; None if none is due."""
        async with self._database.leading(epoch) as connection:
            schedule = None
            while schedule is None:
                row = await (await connection.execute(self.DUE, {"now": now})).fetchone()
                if row is None:
                    break
                try:
                    schedule = schedule_of(row)
                except ValueError as error:  # a program that knows more wrote it
                    await self._set_aside(connection, row["name"], clip(str(error)), now)
            yield ClaimedSchedule(connection, schedule) if schedule else None

    BREAK = """
    UPDATE schedules SET next_due_at = NULL, next_run_at = NULL, last_error = %(error)s, updated_at = %(now)s
    WHERE name = %(name)s
    """

    async def set_aside(self, name: str, error: str, epoch: int, now: datetime) -> None:
        """A schedule that cannot be planned comes no more until it is changed; it says why."""
        async with self._database.leading(epoch) as connection:
            await self._set_aside(connection, name, error, now)

    async def _set_aside(self, connection: Connection, name: str, error: str, now: datetime) -> None:
        await connection.execute(self.BREAK, {"name": name, "error": error, "now": now})
        await note_schedule(connection, "schedule.broken", name, now, detail={"error": error})

    ALL = f"SELECT {SCHEDULE_COLUMNS} FROM schedules ORDER BY name"
    NEW = """
    INSERT INTO schedules (name, owner, enabled, file_enabled, type, spec, timezone, action, arguments, catch_up,
        catch_up_cap, quiet_hours, jitter, priority, next_due_at, next_run_at, created_at, updated_at)
    VALUES (%(name)s, %(owner)s, %(enabled)s, %(file_enabled)s, %(type)s, %(spec)s, %(timezone)s, %(action)s,
        %(arguments)s, %(catch_up)s, %(catch_up_cap)s, %(quiet_hours)s, %(jitter)s, %(priority)s, %(due)s,
        %(run_at)s, %(now)s, %(now)s)
    """
    PUT = f"""{NEW}
    ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, enabled = EXCLUDED.enabled,
        file_enabled = EXCLUDED.file_enabled, type = EXCLUDED.type, spec = EXCLUDED.spec,
        timezone = EXCLUDED.timezone, action = EXCLUDED.action, arguments = EXCLUDED.arguments,
        catch_up = EXCLUDED.catch_up, catch_up_cap = EXCLUDED.catch_up_cap, quiet_hours = EXCLUDED.quiet_hours,
        jitter = EXCLUDED.jitter, priority = EXCLUDED.priority, next_due_at = EXCLUDED.next_due_at,
        next_run_at = EXCLUDED.next_run_at, updated_at = EXCLUDED.updated_at
    """
    REMOVED = """
    UPDATE schedules SET enabled = false, file_enabled = NULL, next_due_at = NULL, next_run_at = NULL,
        updated_at = %(now)s
    WHERE name = %(name)s
    """

    async def follow_file(
        self,
        wanted: Sequence[Definition],
        plan: Callable[[Definition], Planned | None],
        epoch: int,
        now: datetime,
    ) -> None:
        """Make the file's schedules what the file says; what an administrator switched stays until the file changes."""
        async with self._database.leading(epoch) as connection:
            rows = {row["name"]: row for row in await (await connection.execute(self.ALL)).fetchall()}
            for definition in wanted:
                await self._follow(connection, definition, rows.get(definition.name), plan, now)
            names = {definition.name for definition in wanted}
            for name, row in rows.items():
                if row["owner"] == Owner.FILE and name not in names and row["file_enabled"] is not None:
                    await connection.execute(self.REMOVED, {"name": name, "now": now})
                    await stop_work_of(connection, name, now)
                    await note_schedule(connection, "schedule.removed", name, now)

    async def _follow(
        self,
        connection: Connection,
        wanted: Definition,
        row: Mapping[str, Any] | None,
        plan: Callable[[Definition], Planned | None],
        now: datetime,
    ) -> None:
        known = readable(dict(row)) if row is not None else None
        said = row["file_enabled"] if row is not None and row["owner"] == Owner.FILE else None
        if known is not None and said is None and has_come(known, wanted):
            enabled, planned = False, None  # it returns to the file
        elif known is None or said is None:
            enabled, planned = wanted.enabled, plan(wanted)
        elif said == wanted.enabled and same(known.definition, wanted):
            return
        else:
            same_when = same_times(known.definition, wanted)
            fired = (
                known.planned is None and not same_when
            )  # a one-shot switched itself off; this is another one
            enabled = known.enabled if said == wanted.enabled and not fired else wanted.enabled
            stays = same_when and (known.enabled or not enabled)
            planned = known.planned if stays else plan(wanted)
        values = definition_values(wanted) | planned_values(planned)
        values |= {"owner": Owner.FILE.value, "enabled": enabled, "file_enabled": wanted.enabled, "now": now}
        await connection.execute(self.PUT, values)
        if known is not None and known.enabled and not enabled:
            await stop_work_of(connection, wanted.name, now)
        await note_schedule(
            connection, "schedule.created" if known is None else "schedule.changed", wanted.name, now
        )

    AHEAD = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE enabled AND next_run_at > %(now)s"
    REPLAN = """
    UPDATE schedules SET next_due_at = %(due)s, next_run_at = %(run_at)s, updated_at = %(now)s
    WHERE name = %(name)s AND enabled AND next_due_at = %(was)s
    """

    async def replan(
        self, again: Callable[[Schedule], Planned | None], epoch: int, now: datetime
    ) -> list[str]:
        """Bring back those that wait for a time that a clock set wrong made too late; their names."""
        moved = []
        async with self._database.leading(epoch) as connection:
            rows = await (await connection.execute(self.AHEAD, {"now": now})).fetchall()
            for row in rows:
                try:
                    schedule = schedule_of(row)
                    nearer = again(schedule)
                except ValueError as error:
                    await self._set_aside(connection, row["name"], clip(str(error)), now)
                    continue
                if nearer is None or schedule.planned is None:
                    continue
                values = {"name": schedule.name, "was": schedule.planned.due, "now": now}
                await connection.execute(self.REPLAN, values | planned_values(nearer))
                await note_schedule(connection, "schedule.replanned", schedule.name, now)
                moved.append(schedule.name)
        return moved


def same(one: Definition, other: Definition) -> bool:
    """Whether two definitions differ in nothing but `enabled`."""
    mine, theirs = definition_values(one), definition_values(other)
    plain = {key: value.obj if isinstance(value, Jsonb) else value for key, value in mine.items()}
    return plain == {key: value.obj if isinstance(value, Jsonb) else value for key, value in theirs.items()}


def same_times(one: Definition, other: Definition) -> bool:
    """Whether two definitions come at the same times."""
    return (one.type, one.spec, one.timezone, one.jitter) == (
        other.type,
        other.spec,
        other.timezone,
        other.jitter,
    )


def has_come(known: Schedule, wanted: Definition) -> bool:
    """Whether a schedule is a one-shot that has fired at the wanted moment, or later; one by hand before is another."""
    if known.last_run_at is None or wanted.type != ScheduleType.ONE_SHOT:
        return False
    return same_times(known.definition, wanted) and known.last_run_at >= read_moment(
        wanted.spec, wanted.timezone
    )
