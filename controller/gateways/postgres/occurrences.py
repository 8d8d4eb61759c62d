"""Occurrences that need the outside: a queue of leased rows.

    pending ──claim: lease, attempt──▶ running ──▶ completed | failed | skipped
       ▲                                  │
       └──── retry_after, or the lease ran out

Every write of a holder names its lease: one whose lease ran out and was taken by another writes nothing.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from controller.domain.constants import CALL_DEADLINE, OCCURRENCE_LEASE, OCCURRENCE_RETRY_WITHIN
from controller.domain.jobs import Scope
from controller.domain.schedules import Agenda, Occurrence, ScheduleSkip, StartedRun
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.rows import entity_of
from controller.gateways.postgres.schedule_effects import WHO
from controller.gateways.postgres.schedule_rows import OCCURRENCE_COLUMNS, note_schedule, occurrence_of

HOPELESS = "Every process that ran it ended before it was done; the log says why. Then retry it by hand."


class OccurrenceStore:
    """The occurrences table."""

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder

    # A run does not say by which request it was started: of two that ask for the same workflow and are both unanswered
    # neither could be told which run is its own. So the second waits for the first. A number may mean a file.
    NO_RIVAL = """NOT EXISTS (
        SELECT 1 FROM occurrences e
        WHERE e.id <> o.id AND e.status IN ('pending', 'running') AND e.sent_at IS NOT NULL
            AND lower(e.arguments->>'repo') = lower(o.arguments->>'repo')
            AND (lower(e.arguments->>'workflow') = lower(o.arguments->>'workflow')
                OR (e.arguments->>'workflow' ~ '^[0-9]+$') <> (o.arguments->>'workflow' ~ '^[0-9]+$'))
            AND regexp_replace(e.arguments->>'ref', '^refs/(heads|tags)/', '')
                = regexp_replace(o.arguments->>'ref', '^refs/(heads|tags)/', ''))"""
    ALONE = f"(o.sent_at IS NOT NULL OR {NO_RIVAL})"
    # Whoever is unanswered comes before the older ones of its schedule too: those may wait for its answer.
    IN_LINE = f"""o.status = 'pending' AND {ALONE} AND (o.sent_at IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM occurrences e
        WHERE e.schedule = o.schedule AND e.status IN ('pending', 'running') AND e.due_at < o.due_at))"""

    AGENDA = f"""
    SELECT
        (SELECT min(next_run_at) FROM schedules WHERE enabled) AS schedule,
        (SELECT min(COALESCE(o.retry_after, 'epoch')) FROM occurrences o WHERE {IN_LINE}) AS occurrence,
        (SELECT min(warm_until) FROM occurrences WHERE status = 'running' AND leased_until IS NULL) AS window,
        (SELECT min(leased_until) FROM occurrences WHERE status = 'running') AS lease
    """

    async def agenda(self) -> Agenda:
        """When what is due next."""
        (row,) = await self._database.fetch(self.AGENDA)
        return Agenda(**row)

    CLAIM = f"""
    UPDATE occurrences SET status = 'running', attempts = attempts + 1, leased_until = %(until)s,
        leased_by = %(holder)s, started_at = COALESCE(started_at, %(now)s), retry_after = NULL
    WHERE id = (
        SELECT o.id FROM occurrences o
        WHERE {IN_LINE} AND COALESCE(o.retry_after, %(now)s) <= %(now)s
        ORDER BY o.priority DESC, o.due_at, o.id LIMIT 1 FOR UPDATE SKIP LOCKED)
    AND status = 'pending'
    RETURNING {OCCURRENCE_COLUMNS}
    """

    async def claim(self, epoch: int, now: datetime) -> Occurrence | None:
        """Lease the next one that is ripe; of one schedule never two at once, and the older first."""
        values = {"until": now + OCCURRENCE_LEASE, "holder": self._holder, "now": now}
        async with self._database.leading(epoch) as connection:
            row = await (await connection.execute(self.CLAIM, values)).fetchone()
        return occurrence_of(row) if row else None

    LEASED = "id = %(id)s AND status = 'running' AND leased_until = %(lease)s"
    ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('occurrences.sent_at', 0))"
    SENT = f"""
    UPDATE occurrences o SET sent_at = COALESCE(sent_at, %(now)s), last_sent_at = %(now)s,
        runs_before = CASE WHEN sent_at IS NULL THEN %(runs)s ELSE runs_before END
    WHERE {LEASED} AND leased_until > %(answered)s AND {ALONE}
    """

    async def note_sent(
        self, occurrence: Occurrence, runs_before: Collection[int], epoch: int, now: datetime
    ) -> bool:
        """A request is about to be sent; False: it must not be.

        Then another one for the same workflow may be unanswered, or the lease may end before its answer is there.
        """
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.ONE_AT_A_TIME)  # two that were claimed together see each other
            values = {"now": now, "runs": list(runs_before), "answered": now + 2 * CALL_DEADLINE}
            return await self._leased_write(connection, self.SENT, occurrence, values)

    ANSWERED = f"""
    UPDATE occurrences SET status = 'pending', result = %(result)s, retry_after = %(at)s, error = NULL, attempts = 0,
        leased_until = NULL
    WHERE {LEASED}
    """

    async def look_for_run(
        self, occurrence: Occurrence, result: str, at: datetime, epoch: int, now: datetime
    ) -> bool:
        """It was started, but not which run that is was said: from now on it is only looked for."""
        values = {"now": now, "at": at, "result": result}
        return await self._write(self.ANSWERED, occurrence, epoch, values)

    COMPLETE = f"""
    UPDATE occurrences SET status = 'completed', completed_at = %(now)s, leased_until = NULL, error = NULL,
        run_id = %(run_id)s, result = %(result)s
    WHERE {LEASED}
    """

    async def complete(
        self, occurrence: Occurrence, result: str, run: StartedRun | None, epoch: int, now: datetime
    ) -> bool:
        """It is done."""
        values = {"now": now, "result": result, "run_id": run.run_id if run else None}
        detail = {"result": result, "run_id": values["run_id"]}
        return await self._write(self.COMPLETE, occurrence, epoch, values, "schedule.completed", detail)

    OPEN = f"""
    UPDATE occurrences SET leased_until = NULL, error = NULL, warm_until = %(until)s, app_id = %(app_id)s,
        installation_id = %(installation_id)s, entity_id = %(entity_id)s, entity_name = %(entity_name)s,
        entity_type = %(entity_type)s, repo = %(repo)s
    WHERE {LEASED}
    """

    async def open_window(
        self, occurrence: Occurrence, scope: Scope, until: datetime, epoch: int, now: datetime
    ) -> bool:
        """From now on spare runners are kept; it runs until its window ends."""
        values = {
            "now": now,
            "until": until,
            "app_id": scope.app_id,
            "installation_id": scope.installation_id,
            "entity_id": scope.entity.id,
            "entity_name": scope.entity.name,
            "entity_type": scope.entity.type.value,
            "repo": scope.repo,
        }
        detail = {"until": until.isoformat()}
        return await self._write(self.OPEN, occurrence, epoch, values, "schedule.warming", detail)

    SKIP = f"""
    UPDATE occurrences SET status = 'skipped', reason = %(reason)s, completed_at = %(now)s, leased_until = NULL
    WHERE {LEASED}
    """

    async def skip(self, occurrence: Occurrence, reason: ScheduleSkip, epoch: int, now: datetime) -> bool:
        """It does nothing, because what it would do is under way."""
        values = {"now": now, "reason": reason.value}
        return await self._write(self.SKIP, occurrence, epoch, values, "schedule.skipped", {}, reason.value)

    POSTPONE = f"""
    UPDATE occurrences SET status = 'pending', retry_after = %(at)s, error = %(error)s, leased_until = NULL,
        attempts = attempts - %(back)s
    WHERE {LEASED}
    """

    async def postpone(
        self,
        occurrence: Occurrence,
        at: datetime,
        error: str | None,
        *,
        counts: bool,
        epoch: int,
        now: datetime,
    ) -> bool:
        """Try again then; an attempt that was not one does not count."""
        values = {"now": now, "at": at, "error": error, "back": 0 if counts else 1}
        return await self._write(self.POSTPONE, occurrence, epoch, values)

    FAIL = f"""
    UPDATE occurrences SET status = 'failed', error = %(error)s, completed_at = %(now)s, leased_until = NULL,
        sent_at = CASE WHEN %(refused)s THEN NULL ELSE sent_at END,
        last_sent_at = CASE WHEN %(refused)s THEN NULL ELSE last_sent_at END,
        runs_before = CASE WHEN %(refused)s THEN '{{}}' ELSE runs_before END
    WHERE {LEASED}
    """
    # Whoever switches a schedule holds its row before those of its occurrences; so does what writes both here.
    ITS_SCHEDULE = "SELECT 1 FROM schedules WHERE name = %(schedule)s FOR UPDATE"
    LAST_ERROR = "UPDATE schedules SET last_error = %(error)s, updated_at = %(now)s WHERE name = %(schedule)s"

    async def fail(
        self, occurrence: Occurrence, error: str, epoch: int, now: datetime, *, refused: bool = False
    ) -> bool:
        """It failed for good, until somebody retries it by hand; the schedule shows why. Refused: nothing was sent."""
        async with self._database.leading(epoch) as connection:
            values = {"now": now, "error": error, "schedule": occurrence.schedule, "refused": refused}
            await connection.execute(self.ITS_SCHEDULE, values)
            failed = await self._leased_write(connection, self.FAIL, occurrence, values)
            if failed:
                await connection.execute(self.LAST_ERROR, values)
                await self._note(connection, "schedule.failed", occurrence, now, {"error": error}, None)
        return failed

    # Of a retried one also those that came after it.
    OTHERS = f"""
    SELECT {OCCURRENCE_COLUMNS} FROM occurrences
    WHERE schedule = %(schedule)s AND id <> %(id)s AND run_id IS NOT NULL AND run_ended_at IS NULL
    ORDER BY due_at DESC LIMIT %(limit)s
    """

    async def other_runs(self, occurrence: Occurrence, limit: int) -> list[Occurrence]:
        """The others of its schedule whose run is not known to have ended, newest first."""
        values = {"schedule": occurrence.schedule, "id": occurrence.id, "limit": limit}
        async with self._database.transaction() as connection:
            rows = await (await connection.execute(self.OTHERS, values)).fetchall()
        return [occurrence_of(row) for row in rows]

    RUN_ENDED = "UPDATE occurrences SET run_ended_at = %(now)s WHERE id = %(id)s AND run_ended_at IS NULL"

    async def note_run_ended(self, occurrence: Occurrence, epoch: int, now: datetime) -> None:
        """GitHub says that the run it started has ended."""
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.RUN_ENDED, {"id": occurrence.id, "now": now})

    LINKED = "SELECT run_id FROM occurrences WHERE run_id = ANY(%(run_ids)s)"

    async def linked(self, run_ids: Collection[int]) -> frozenset[int]:
        """Which of these runs belong to an occurrence already."""
        async with self._database.transaction() as connection:
            cursor = await connection.execute(self.LINKED, {"run_ids": list(run_ids)})
            return frozenset(row["run_id"] for row in await cursor.fetchall())

    KNOWN = """
    SELECT app_id, installation_id, entity_id, entity_name, entity_type FROM jobs
    WHERE seen_at > %(since)s AND lower(entity_name) = %(login)s
        AND (%(repo)s::text IS NULL OR lower(repo) = %(repo)s)
    ORDER BY seen_at DESC LIMIT 1
    """

    async def known_scope(self, login: str, repo: str | None, since: datetime) -> Scope | None:
        """Where a recent job of that account (and repository) belonged."""
        values = {"since": since, "login": login.lower(), "repo": repo.lower() if repo else None}
        async with self._database.transaction() as connection:
            row = await (await connection.execute(self.KNOWN, values)).fetchone()
        return Scope(row["app_id"], row["installation_id"], entity_of(row), repo) if row else None

    # A lease that runs for longer than any does was written by a clock that was ahead.
    RECLAIM = """
    UPDATE occurrences SET status = CASE WHEN attempts > max_attempts THEN 'failed' ELSE 'pending' END,
        completed_at = CASE WHEN attempts > max_attempts THEN %(now)s::timestamptz END,
        error = CASE WHEN attempts > max_attempts THEN %(hopeless)s ELSE 'the process that ran it ended' END,
        leased_until = NULL
    WHERE status = 'running' AND (leased_until <= %(now)s OR leased_until > %(ahead)s) AND id <> ALL(%(held)s)
    RETURNING schedule, status, error
    """

    THEIR_SCHEDULES = """
    SELECT 1 FROM schedules WHERE name IN (SELECT schedule FROM occurrences WHERE status = 'running')
    ORDER BY name FOR UPDATE
    """

    async def reclaim(self, held: Collection[int], epoch: int, now: datetime) -> list[str]:
        """Put back what a process left behind that ended, but for what this one has in hand."""
        values = {"now": now, "ahead": now + 2 * OCCURRENCE_LEASE, "held": list(held), "hopeless": HOPELESS}
        async with self._database.leading(epoch) as connection:
            await connection.execute(self.THEIR_SCHEDULES)
            rows = await (await connection.execute(self.RECLAIM, values)).fetchall()
            for row in rows:
                await note_schedule(connection, "schedule.reclaimed", row["schedule"], now)
                if row["status"] == "failed":
                    await connection.execute(self.LAST_ERROR, {**row, "now": now})
                    detail = {"error": row["error"]}
                    await note_schedule(connection, "schedule.failed", row["schedule"], now, detail=detail)
        return [row["schedule"] for row in rows]

    TOO_LATE = """
    UPDATE occurrences SET retry_after = NULL WHERE status = 'pending' AND retry_after > %(latest)s
    """
    TOO_LONG = """
    UPDATE occurrences SET warm_until = %(now)s + make_interval(secs => (arguments->>'for')::float)
    WHERE status = 'running' AND leased_until IS NULL
        AND warm_until > %(now)s + make_interval(secs => (arguments->>'for')::float)
    """
    HELD_TOO_LONG = """
    UPDATE holds h SET until = %(now)s + make_interval(secs => (s.arguments->>'for')::float)
    FROM schedules s WHERE h.who = %(mark)s || s.name
        AND h.until > %(now)s + make_interval(secs => (s.arguments->>'for')::float)
    """

    async def pull_back(self, epoch: int, now: datetime) -> None:
        """What a clock set ahead wrote lasts no longer than it would from now on."""
        values = {"now": now, "latest": now + OCCURRENCE_RETRY_WITHIN, "mark": WHO}
        async with self._database.leading(epoch) as connection:
            for statement in (self.TOO_LATE, self.TOO_LONG, self.HELD_TOO_LONG):
                await connection.execute(statement, values)

    END_WINDOWS = """
    UPDATE occurrences SET status = 'completed', completed_at = %(now)s, result = 'its window has ended'
    WHERE status = 'running' AND leased_until IS NULL AND warm_until <= %(now)s RETURNING schedule
    """

    async def end_windows(self, epoch: int, now: datetime) -> int:
        """Close the warm windows whose time is over; how many."""
        async with self._database.leading(epoch) as connection:
            rows = await (await connection.execute(self.END_WINDOWS, {"now": now})).fetchall()
            for row in rows:
                await note_schedule(connection, "schedule.completed", row["schedule"], now)
        return len(rows)

    async def _write(
        self,
        statement: str,
        occurrence: Occurrence,
        epoch: int,
        values: dict[str, Any],
        kind: str | None = None,
        detail: dict[str, Any] | None = None,
        outcome: str | None = None,
    ) -> bool:
        async with self._database.leading(epoch) as connection:
            written = await self._leased_write(connection, statement, occurrence, values)
            if written and kind is not None:
                await self._note(connection, kind, occurrence, values["now"], detail or {}, outcome)
        return written

    async def _leased_write(
        self, connection: Connection, statement: str, occurrence: Occurrence, values: dict[str, Any]
    ) -> bool:
        lease = {"id": occurrence.id, "lease": occurrence.leased_until}
        return bool((await connection.execute(statement, values | lease)).rowcount)

    async def _note(
        self,
        connection: Connection,
        kind: str,
        occurrence: Occurrence,
        now: datetime,
        detail: dict[str, Any],
        outcome: str | None,
    ) -> None:
        detail = {"due": occurrence.due_at.isoformat(), "occurrence": occurrence.id, **detail}
        await note_schedule(connection, kind, occurrence.schedule, now, outcome=outcome, detail=detail)
