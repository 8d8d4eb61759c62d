"""Schedules as people change them: one short transaction each, with its event and the doorbell.

These need no leadership: they are wishes that the leader's next iteration reads. A row's lock puts them and the
firing of the same schedule into an order.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from controller.decide.occurrences import flood_guard, plan_after_hand
from controller.domain.controls import By
from controller.domain.firings import Firing
from controller.domain.schedules import (
    Definition,
    Occurrence,
    Owner,
    Planned,
    Schedule,
    ScheduleSkip,
)
from controller.gateways.postgres.database import Connection, Database, ring
from controller.gateways.postgres.occurrences import OccurrenceStore
from controller.gateways.postgres.schedule_rows import (
    OCCURRENCE_COLUMNS,
    SCHEDULE_COLUMNS,
    definition_values,
    note_schedule,
    occurrence_of,
    planned_values,
    schedule_of,
)
from controller.gateways.postgres.schedules import ClaimedSchedule, ScheduleStore, stop_work_of

Change = Callable[[Schedule], tuple[Definition, Planned | None]]


class ScheduleDesk:
    """What the API and the forms of the page write."""

    def __init__(self, database: Database) -> None:
        self._database = database

    CREATE = f"{ScheduleStore.NEW} ON CONFLICT (name) DO NOTHING RETURNING name"

    async def create(
        self, definition: Definition, planned: Planned | None, by: By, now: datetime
    ) -> Schedule | None:
        """A new schedule of the API's; None if the name is taken."""
        async with self._database.transaction() as connection:
            values = self._values(definition, planned, now)
            if await (await connection.execute(self.CREATE, values)).fetchone() is None:
                return None
            await note_schedule(connection, "schedule.created", definition.name, now, by=by)
            await ring(connection, self._database.channel)
            return await self._locked(connection, definition.name)

    async def change(self, name: str, change: Change, by: By, now: datetime) -> Schedule | None:
        """Change one of the API's; None if there is none."""
        async with self._database.transaction() as connection:
            schedule = await self._locked(connection, name)
            if schedule is None:
                return None
            definition, planned = change(schedule)
            await connection.execute(ScheduleStore.PUT, self._values(definition, planned, now))
            if schedule.enabled and not definition.enabled:
                await stop_work_of(connection, name, now)
            await note_schedule(connection, "schedule.changed", name, now, by=by)
            await ring(connection, self._database.channel)
            return await self._locked(connection, name)

    SWITCH = """
    UPDATE schedules SET enabled = %(enabled)s, next_due_at = %(due)s, next_run_at = %(run_at)s,
        updated_at = %(now)s
    WHERE name = %(name)s
    """

    async def switch(
        self,
        name: str,
        enabled: bool,
        plan: Callable[[Definition], Planned | None],
        by: By,
        now: datetime,
    ) -> Schedule | None:
        """Enable or disable a schedule, whoever owns it; None if there is none."""
        async with self._database.transaction() as connection:
            schedule = await self._locked(connection, name)
            if schedule is None:
                return None
            planned = schedule.planned
            if enabled and not schedule.enabled:
                planned = plan(schedule.definition)
            values = {"name": name, "enabled": enabled, "now": now} | planned_values(planned)
            await connection.execute(self.SWITCH, values)
            if not enabled:
                await stop_work_of(connection, name, now)
            kind = "schedule.enabled" if enabled else "schedule.disabled"
            await note_schedule(connection, kind, name, now, by=by)
            await ring(connection, self._database.channel)
            return await self._locked(connection, name)

    DELETE = "DELETE FROM schedules WHERE name = %(name)s"

    async def delete(self, name: str, by: By, now: datetime) -> Schedule | None:
        """Forget one that is not in the file; its occurrences stay. The answer is what it was, or None."""
        async with self._database.transaction() as connection:
            schedule = await self._locked(connection, name)
            if schedule is not None and not schedule.in_file:
                await connection.execute(self.DELETE, {"name": name})
                await stop_work_of(connection, name, now)
                await note_schedule(connection, "schedule.deleted", name, now, by=by)
                await ring(connection, self._database.channel)
            return schedule

    ONE = f"SELECT {OCCURRENCE_COLUMNS} FROM occurrences WHERE schedule = %(name)s AND due_at = %(due)s"

    async def run_now(self, name: str, by: By, now: datetime) -> Occurrence | ScheduleSkip | None:
        """Fire outside its times, also in quiet hours; the flood guard holds. None if there is no such schedule."""
        async with self._database.transaction() as connection:
            schedule = await self._locked(connection, name)
            if schedule is None:
                return None
            claimed = ClaimedSchedule(connection, schedule)
            if not schedule.enabled:
                return ScheduleSkip.DISABLED
            refused = flood_guard(schedule.definition.action, await claimed.pressure())
            if refused is not None:
                return refused
            planned = plan_after_hand(schedule, now)
            await claimed.record(Firing(fire=(now,), planned=planned), now, manual=True)
            await note_schedule(connection, "schedule.run", name, now, by=by)
            await ring(connection, self._database.channel)
            cursor = await connection.execute(self.ONE, {"name": name, "due": now})
            row = await cursor.fetchone()
        return occurrence_of(row) if row else None

    LOCK_OCCURRENCE = f"SELECT {OCCURRENCE_COLUMNS} FROM occurrences WHERE id = %(id)s FOR UPDATE"
    # What was sent before stays noted: the run of a lost answer is looked for before anything is sent again. So it may
    # not come back beside another that is unanswered.
    RETRY = f"""
    UPDATE occurrences o SET status = 'pending', attempts = 0, retry_after = NULL, completed_at = NULL
    WHERE id = %(id)s AND status = 'failed' AND (sent_at IS NULL OR {OccurrenceStore.NO_RIVAL})
    RETURNING {OCCURRENCE_COLUMNS}
    """

    async def retry(self, number: int, by: By, now: datetime) -> tuple[Occurrence, bool] | None:
        """Put a failed occurrence back into the queue; whether that was done. None if there is none."""
        async with self._database.transaction() as connection:
            row = await (await connection.execute(self.LOCK_OCCURRENCE, {"id": number})).fetchone()
            if row is None:
                return None
            seen = occurrence_of(row)
            await connection.execute(OccurrenceStore.ONE_AT_A_TIME)
            again = await (await connection.execute(self.RETRY, {"id": number})).fetchone()
            if again is None:
                return seen, False
            detail = {"occurrence": number, "due": seen.due_at.isoformat()}
            await note_schedule(connection, "schedule.retried", seen.schedule, now, by=by, detail=detail)
            await ring(connection, self._database.channel)
        return occurrence_of(again), True

    # What was sent may have started a run, which is looked for.
    CANCEL = f"""
    UPDATE occurrences SET status = 'skipped', reason = '{ScheduleSkip.CANCELLED.value}', completed_at = %(now)s
    WHERE id = %(id)s AND status = 'pending' AND sent_at IS NULL AND result IS NULL
    RETURNING {OCCURRENCE_COLUMNS}
    """

    async def cancel(self, number: int, by: By, now: datetime) -> tuple[Occurrence, bool] | None:
        """Take back a pending occurrence; whether that was done. None if there is none."""
        async with self._database.transaction() as connection:
            row = await (await connection.execute(self.LOCK_OCCURRENCE, {"id": number})).fetchone()
            if row is None:
                return None
            gone = await (await connection.execute(self.CANCEL, {"id": number, "now": now})).fetchone()
            if gone is None:
                return occurrence_of(row), False
            cancelled = occurrence_of(gone)
            detail = {"occurrence": number, "due": cancelled.due_at.isoformat()}
            await note_schedule(
                connection, "schedule.cancelled", cancelled.schedule, now, by=by, detail=detail
            )
            await ring(connection, self._database.channel)  # others of its schedule may have waited for it
        return cancelled, True

    LOCK = f"SELECT {SCHEDULE_COLUMNS} FROM schedules WHERE name = %(name)s FOR UPDATE"

    async def _locked(self, connection: Connection, name: str) -> Schedule | None:
        row = await (await connection.execute(self.LOCK, {"name": name})).fetchone()
        return schedule_of(row) if row else None

    def _values(self, definition: Definition, planned: Planned | None, now: datetime) -> dict[str, Any]:
        values: dict[str, Any] = definition_values(definition) | planned_values(planned)
        values |= {"owner": Owner.API.value, "enabled": definition.enabled, "file_enabled": None, "now": now}
        return values
