"""Taking in a delivery: one short transaction, idempotent by its GUID and by the forward-only states.

It writes `jobs` and `events`, never `workers`: the EXCLUSIVE lock of sync_workers must not make a webhook wait.
"""

from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from controller.decide.deliveries import preliminary_outcome
from controller.domain.constants import PENDING_SILENCE, RUNNING_SILENCE
from controller.domain.deliveries import Delivery, InstallationNotice, JobNotice, OtherNotice, Outcome
from controller.domain.pools import Catalogue
from controller.gateways.postgres.database import Connection, Database, ring

NOTHING = timedelta(0)


class Intake:
    """What the receiver and the pull of missed deliveries write."""

    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    SEEN = "SELECT outcome FROM events WHERE delivery = %(guid)s"

    async def take(self, delivery: Delivery, *, known_app: bool, allowed: bool, now: datetime) -> Outcome:
        """Record one delivery and what follows from it; a second time changes nothing."""
        outcome = preliminary_outcome(delivery.notice, self._catalogue, known_app=known_app, allowed=allowed)
        async with self._database.transaction() as connection:
            seen = await (await connection.execute(self.SEEN, {"guid": delivery.guid})).fetchone()
            if seen is not None:
                return Outcome(seen["outcome"])
            if outcome is None and isinstance(delivery.notice, JobNotice):
                outcome = await self._take_job(connection, delivery, delivery.notice, now, allowed=allowed)
            outcome = outcome or Outcome.OK
            await self._record(connection, delivery, outcome, now)
            await ring(connection, self._database.channel)
        return outcome

    async def _take_job(
        self, connection: Connection, delivery: Delivery, notice: JobNotice, now: datetime, *, allowed: bool
    ) -> Outcome:
        match notice.action:
            case "queued" | "waiting":
                return await self._queued(connection, delivery, notice, now)
            case "in_progress":
                if allowed:
                    await self._insert(connection, delivery, notice, now, confirmed=True)
                return await self._in_progress(connection, notice, now)
            case _:
                return await self._completed(connection, notice, now)

    INSERT = """
    INSERT INTO jobs (job_id, name, html_url, entity_id, entity_name, entity_type, repo, private, app_id,
        installation_id, labels, pool, run_id, run_attempt, status, learnt_from, confirmed, heard_at, poll_at,
        created_at, seen_at, updated_at)
    VALUES (%(job_id)s, %(name)s, %(html_url)s, %(entity_id)s, %(entity_name)s, %(entity_type)s, %(repo)s,
        %(private)s, %(app_id)s, %(installation_id)s, %(labels)s, %(pool)s, %(run_id)s, %(run_attempt)s,
        'pending', %(source)s, %(confirmed)s, %(now)s, %(poll_at)s, %(created_at)s, %(now)s, %(now)s)
    ON CONFLICT (job_id) DO NOTHING
    """
    LOOK_AGAIN = """
    UPDATE jobs SET poll_at = %(now)s, heard_at = %(now)s, updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending' AND NOT confirmed
    """
    WITHDRAW = """
    UPDATE jobs SET confirmed = false, poll_at = %(now)s, heard_at = %(now)s, updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending'
    """

    async def _queued(
        self, connection: Connection, delivery: Delivery, notice: JobNotice, now: datetime
    ) -> Outcome:
        """A job that waits for an approval is looked at before it counts, whichever delivery came first."""
        if notice.action == "waiting":
            cursor = await connection.execute(self.WITHDRAW, {"job_id": notice.job_id, "now": now})
            return Outcome.JOB_ALREADY_EXISTS if cursor.rowcount else Outcome.IGNORED_ACTION
        waited = await self._earlier(connection, notice.job_id, "workflow_job.waiting")
        confirmed = notice.confirmed and waited is None
        inserted = await self._insert(connection, delivery, notice, now, confirmed=confirmed)
        if not inserted:
            await connection.execute(self.LOOK_AGAIN, {"job_id": notice.job_id, "now": now})
            return Outcome.JOB_ALREADY_EXISTS
        ended = await self._earlier(connection, notice.job_id, "workflow_job.completed")
        if ended is not None:
            await connection.execute(self.COMPLETE, {**ended, "job_id": notice.job_id, "now": now})
        return Outcome.JOB_STORED

    async def _insert(
        self, connection: Connection, delivery: Delivery, notice: JobNotice, now: datetime, *, confirmed: bool
    ) -> bool:
        pool = self._catalogue.serving(notice.labels)
        cursor = await connection.execute(
            self.INSERT,
            {
                "job_id": notice.job_id,
                "name": notice.name,
                "html_url": notice.html_url,
                "entity_id": notice.entity.id,
                "entity_name": notice.entity.name,
                "entity_type": notice.entity.type.value,
                "repo": notice.repo,
                "private": notice.private,
                "app_id": delivery.app_id,
                "installation_id": notice.installation_id,
                "labels": list(notice.labels),
                "pool": pool.name if pool else None,
                "run_id": notice.run_id,
                "run_attempt": notice.run_attempt,
                "source": delivery.source,
                "confirmed": confirmed,
                "poll_at": now + (PENDING_SILENCE[0] if confirmed else NOTHING),
                "created_at": notice.created_at,
                "now": now,
            },
        )
        return cursor.rowcount == 1

    START = """
    UPDATE jobs SET status = 'running', runner_name = COALESCE(%(runner_name)s, runner_name),
        started_at = %(started_at)s, confirmed = true, heard_at = %(now)s, poll_at = %(poll_at)s, polls = 0,
        missing_since = NULL, skip_reason = NULL, skip_since = NULL, skip_detail = '{}', updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending'
    """
    BIND_LATE = """
    UPDATE jobs SET runner_name = COALESCE(runner_name, %(runner_name)s),
        started_at = COALESCE(started_at, %(started_at)s), updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status <> 'pending'
    """

    async def _in_progress(self, connection: Connection, notice: JobNotice, now: datetime) -> Outcome:
        """GitHub has given the job to a runner: this is where the binding comes from."""
        values = {
            "job_id": notice.job_id,
            "runner_name": notice.runner_name,
            "started_at": notice.started_at or now,
            "poll_at": now + RUNNING_SILENCE,
            "now": now,
        }
        cursor = await connection.execute(self.START, values)
        if cursor.rowcount == 0:
            cursor = await connection.execute(self.BIND_LATE, values)
            return Outcome.JOB_ALREADY_EXISTS if cursor.rowcount else Outcome.JOB_NOT_FOUND
        ended = await self._earlier(connection, notice.job_id, "workflow_job.completed")
        if ended is not None:
            await connection.execute(self.COMPLETE, {**ended, "job_id": notice.job_id, "now": now})
        return Outcome.JOB_MARKED_RUNNING

    COMPLETE = """
    UPDATE jobs SET status = 'completed', conclusion = %(conclusion)s,
        runner_name = COALESCE(runner_name, %(runner_name)s),
        started_at = COALESCE(started_at, CASE WHEN %(runner_name)s::text IS NULL THEN NULL
                                               ELSE %(started_at)s::timestamptz END),
        completed_at = COALESCE(%(completed_at)s, %(now)s),
        heard_at = %(now)s, skip_reason = NULL, skip_since = NULL, skip_detail = '{}', updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    """
    EXISTS = "SELECT 1 AS one FROM jobs WHERE job_id = %(job_id)s"

    async def _completed(self, connection: Connection, notice: JobNotice, now: datetime) -> Outcome:
        """GitHub has finished the job, whatever the conclusion; without a row it creates none."""
        cursor = await connection.execute(
            self.COMPLETE, {**ending_of(notice), "job_id": notice.job_id, "now": now}
        )
        if cursor.rowcount:
            return Outcome.JOB_MARKED_COMPLETED
        known = await (await connection.execute(self.EXISTS, {"job_id": notice.job_id})).fetchone()
        return Outcome.JOB_ALREADY_EXISTS if known else Outcome.JOB_NOT_FOUND

    EARLIER = """
    SELECT detail FROM events WHERE job_id = %(job_id)s AND kind = %(kind)s ORDER BY id DESC LIMIT 1
    """

    async def _earlier(self, connection: Connection, job_id: int, kind: str) -> dict[str, Any] | None:
        """What a delivery that overtook this one said."""
        row = await (await connection.execute(self.EARLIER, {"job_id": job_id, "kind": kind})).fetchone()
        if row is None:
            return None
        return {name: row["detail"].get(name) for name in ENDING_FIELDS}

    RECORD = """
    INSERT INTO events (at, source, kind, outcome, delivery, job_id, entity_id, installation_id, app_id, detail)
    VALUES (%(now)s, %(source)s, %(kind)s, %(outcome)s, %(guid)s, %(job_id)s, %(entity_id)s,
        %(installation_id)s, %(app_id)s, %(detail)s)
    ON CONFLICT (delivery) WHERE delivery IS NOT NULL DO NOTHING
    """

    async def _record(
        self, connection: Connection, delivery: Delivery, outcome: Outcome, now: datetime
    ) -> None:
        kind, fields, detail = self._described(delivery)
        await connection.execute(
            self.RECORD,
            {
                "job_id": None,
                "entity_id": None,
                "installation_id": None,
                **fields,
                "now": now,
                "source": delivery.source,
                "kind": kind,
                "outcome": outcome.value,
                "guid": delivery.guid,
                "app_id": delivery.app_id,
                "detail": Jsonb(detail),
            },
        )

    def _described(self, delivery: Delivery) -> tuple[str, dict[str, Any], dict[str, Any]]:
        match delivery.notice:
            case JobNotice() as notice:
                nearest = self._catalogue.nearest(notice.labels)
                return (
                    f"workflow_job.{notice.action}"[:100],
                    {
                        "job_id": notice.job_id,
                        "entity_id": notice.entity.id,
                        "installation_id": notice.installation_id,
                    },
                    {
                        **ending_of(notice, as_text=True),
                        "repo": notice.repo,
                        "private": notice.private,
                        "run_id": notice.run_id,
                        "labels": list(notice.labels),
                        "nearest": list(nearest) if nearest else None,
                        "status": notice.status,
                    },
                )
            case InstallationNotice() as notice:
                return (
                    f"{notice.event}.{notice.action}"[:100],
                    {"installation_id": notice.installation_id},
                    {"account": notice.account},
                )
            case OtherNotice() as notice:
                return (f"{notice.event}.{notice.action}"[:200], {}, {})
            case _:
                return (delivery.event[:100], {}, {})


ENDING_FIELDS = ("conclusion", "runner_name", "started_at", "completed_at")


def ending_of(notice: JobNotice, *, as_text: bool = False) -> dict[str, Any]:
    """The fields by which a job ends, as parameters or as JSON."""
    values: dict[str, Any] = {name: getattr(notice, name) for name in ENDING_FIELDS}
    if as_text:
        return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in values.items()}
    return values
