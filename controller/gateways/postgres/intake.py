"""Taking in a delivery: one short transaction, idempotent by its GUID and by the forward-only states.

Deliveries of one job are taken one after the other, under a lock that ends with the transaction: otherwise a
`completed` and a `queued` that arrive together would each miss what the other has not committed yet.
It writes `jobs` and `events`, never `workers`: the EXCLUSIVE lock of sync_workers must not make a webhook wait.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from controller.decide.deliveries import preliminary_outcome
from controller.decide.milestones import reached_by_delivery
from controller.domain.constants import PENDING_SILENCE, RUNNING_SILENCE
from controller.domain.deliveries import Delivery, InstallationNotice, JobNotice, OtherNotice, Outcome, Taken
from controller.domain.milestones import Milestone, unnoticed
from controller.domain.pools import Catalogue
from controller.domain.sightings import DeliverySighting
from controller.gateways.postgres.database import Connection, Database, ring

AT_ONCE = timedelta(0)
UPSETTING = {"deleted", "suspend", "unsuspend"}  # what an owner does to an installation
WITHOUT_EFFECT = {  # nothing for the loop to do, so nobody is woken: most jobs of an organization are not ours
    Outcome.JOB_NOT_FOUND,
    Outcome.IGNORED_ACTION,
    Outcome.IGNORED_NO_LABEL,
    Outcome.IGNORED_EVENT,
    Outcome.IGNORED_NO_APP,
    Outcome.NOT_ALLOWED,
}


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier deliveries said: this one's outcome if it is a double, and what overtook it."""

    outcome: Outcome | None
    waited: bool
    ended: dict[str, Any] | None


NOTHING = Known(None, False, None)


class Intake:
    """What the receiver and the pull of missed deliveries write."""

    def __init__(
        self, database: Database, catalogue: Catalogue, note: Callable[[Milestone], None] = unnoticed
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._note = note

    # In this order everywhere, `unheard_of` included: a delivery waits for its own double before it waits for its job.
    ONE_AT_A_TIME = """
    SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' delivery ' || %(guid)s, 0)),
        pg_advisory_xact_lock(hashtextextended(current_schema() || ' job ' || %(job)s, 0))
    """

    async def take(self, delivery: Delivery, *, known_app: bool, allowed: bool, now: datetime) -> Outcome:
        """Record one delivery and what follows from it; a second time changes nothing."""
        notice = delivery.notice
        outcome = preliminary_outcome(notice, self._catalogue, known_app=known_app, allowed=allowed)
        if outcome is None and isinstance(notice, JobNotice) and await self._is_news(delivery, notice, now):
            self._count(notice, Outcome.JOB_STORED, NOTHING, now)
            return Outcome.JOB_STORED
        job_id = notice.job_id if isinstance(notice, JobNotice) else None
        async with self._database.transaction() as connection:
            locks = {"guid": delivery.guid, "job": str(job_id or delivery.guid)}
            await connection.execute(self.ONE_AT_A_TIME, locks)
            known = await self._look(connection, delivery.guid, job_id)
            if known.outcome is not None:
                return known.outcome
            if outcome is None and isinstance(notice, JobNotice):
                outcome = await self._take_job(connection, delivery, notice, known, now, allowed=allowed)
            outcome = outcome or Outcome.OK
            if isinstance(notice, InstallationNotice) and notice.action in UPSETTING:
                due = {"installation_id": notice.installation_id, "now": now}
                await connection.execute(self.LOOK_AT_ALL, due)
            await connection.execute(self.EVENT, self._event_values(delivery, outcome, now))
            if outcome not in WITHOUT_EFFECT:
                await ring(connection, self._database.channel)
        if isinstance(notice, JobNotice):
            self._count(notice, outcome, known, now)
        return outcome

    def _count(self, notice: JobNotice, outcome: Outcome, known: Known, now: datetime) -> None:
        """After the commit: what was not written is not counted, and a double never comes here."""
        pool = self._catalogue.serving(notice.labels)
        ended = known.ended["conclusion"] if known.ended else None
        for milestone in reached_by_delivery(notice, outcome, pool.name if pool else None, ended, now):
            self._note(milestone)

    # Suspended, let back in or gone: whatever waits there is asked about, so that it ends or goes on.
    LOOK_AT_ALL = """
    UPDATE jobs SET poll_at = %(now)s
    WHERE installation_id = %(installation_id)s AND status IN ('pending', 'running')
    """
    LOOK = """
    SELECT (SELECT outcome FROM events WHERE delivery = %(guid)s) AS outcome,
        EXISTS (SELECT 1 FROM events WHERE job_id = %(job_id)s AND kind = 'workflow_job.waiting') AS waited,
        (SELECT detail FROM events WHERE job_id = %(job_id)s AND kind = 'workflow_job.completed'
         ORDER BY id DESC LIMIT 1) AS ended
    """

    async def _look(self, connection: Connection, guid: str, job_id: int | None) -> Known:
        cursor = await connection.execute(self.LOOK, {"guid": guid, "job_id": job_id})
        row = await cursor.fetchone() or {}
        ended = row.get("ended")
        return Known(
            outcome=Outcome(row["outcome"]) if row.get("outcome") else None,
            waited=bool(row.get("waited")),
            ended={name: ended.get(name) for name in ENDING_FIELDS} if ended else None,
        )

    MISSING = """
    SELECT guid FROM unnest(%(guids)s::text[]) AS guid
    WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.delivery = guid)
    """

    async def missing(self, guids: Collection[str]) -> frozenset[str]:
        """Which of these deliveries have not been taken in."""
        rows = await self._database.fetch(self.MISSING, {"guids": list(guids)})
        return frozenset(row["guid"] for row in rows)

    # GitHub keeps deliveries for three days; an App that has been silent for longer is not looked for any further.
    NEWEST = """
    SELECT delivery AS guid, at FROM events
    WHERE delivery IS NOT NULL AND app_id = %(app_id)s AND at >= (SELECT max(at) FROM events) - interval '3 days'
    ORDER BY at DESC LIMIT 1
    """

    async def newest(self, app_id: str) -> Taken | None:
        """The delivery of an App that was taken in last."""
        rows = await self._database.fetch(self.NEWEST, {"app_id": app_id})
        return Taken(rows[0]["guid"], rows[0]["at"]) if rows else None

    GIVE_UP = """
    INSERT INTO events (at, source, kind, installation_id, app_id, detail)
    VALUES (%(now)s, 'pull', 'delivery.given_up', %(installation_id)s, %(app_id)s, %(detail)s)
    """

    async def give_up(self, app_id: str, listed: DeliverySighting, error: str, now: datetime) -> None:
        """Leave an event, not under its GUID: should it come after all, it is news."""
        detail = {"guid": listed.guid, "event": listed.event, "action": listed.action, "error": error}
        values = {"installation_id": listed.installation_id, "app_id": app_id, "detail": Jsonb(detail)}
        async with self._database.transaction() as connection:
            await connection.execute(self.GIVE_UP, {**values, "now": now})

    async def _take_job(
        self,
        connection: Connection,
        delivery: Delivery,
        notice: JobNotice,
        known: Known,
        now: datetime,
        *,
        allowed: bool,
    ) -> Outcome:
        match notice.action:
            case "queued":
                outcome = await self._queued(connection, delivery, notice, known, now)
            case "waiting":
                outcome = await self._waiting(connection, notice, now)
            case "in_progress":
                served = self._catalogue.serving(notice.labels) is not None
                if (allowed and served) or await self._runs_here(connection, notice):
                    await self._insert(connection, delivery, notice, now, confirmed=True)
                outcome = await self._in_progress(connection, notice, now)
                if outcome is Outcome.JOB_NOT_FOUND and not served:
                    outcome = Outcome.IGNORED_NO_LABEL
            case _:
                return await self._completed(connection, delivery, notice, now)
        if known.ended is not None and outcome in (Outcome.JOB_STORED, Outcome.JOB_MARKED_RUNNING):
            await connection.execute(self.COMPLETE, {**known.ended, "job_id": notice.job_id, "now": now})
        return outcome

    JOB = """
    INSERT INTO jobs (job_id, name, html_url, entity_id, entity_name, entity_type, repo, private, app_id,
        installation_id, labels, pool, run_id, run_attempt, status, learnt_from, confirmed, heard_at, poll_at,
        created_at, seen_at, updated_at)
    SELECT %(job_id)s, %(name)s, %(html_url)s, %(entity_id)s, %(entity_name)s, %(entity_type)s, %(repo)s,
        %(private)s, %(app_id)s, %(installation_id)s, %(labels)s, %(pool)s, %(run_id)s, %(run_attempt)s,
        'pending', %(source)s, %(confirmed)s, %(now)s, %(poll_at)s, %(created_at)s, %(now)s, %(now)s
    """
    EVENT = """
    INSERT INTO events (at, source, kind, outcome, delivery, job_id, entity_id, installation_id, app_id, detail)
    SELECT %(now)s, %(source)s, %(kind)s, %(outcome)s, %(guid)s, %(job_id)s::bigint, %(entity_id)s::bigint,
        %(installation_id)s::bigint, %(app_id)s, %(detail)s
    """

    # The whole transaction as one statement, for what is taken in most urgently: a job that nobody has heard of.
    NEWS = f"""
    WITH stored AS (
        {JOB} WHERE unheard_of(%(guid)s, %(job_id)s) ON CONFLICT (job_id) DO NOTHING RETURNING job_id
    ), recorded AS ({EVENT} FROM stored)
    SELECT pg_notify(%(channel)s, '') FROM stored
    """

    async def _is_news(self, delivery: Delivery, notice: JobNotice, now: datetime) -> bool:
        """Take in a queued job of which nothing was heard before; False if that is not what this is."""
        if notice.action != "queued":
            return False
        job = self._job_values(delivery, notice, now, confirmed=notice.confirmed)
        event = self._event_values(delivery, Outcome.JOB_STORED, now)
        return bool(
            await self._database.fetch(self.NEWS, {**job, **event, "channel": self._database.channel})
        )

    INSERT = f"{JOB} ON CONFLICT (job_id) DO NOTHING"
    LOOK_AGAIN = """
    UPDATE jobs SET poll_at = %(now)s, heard_at = %(now)s, updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending' AND NOT confirmed
    """
    WITHDRAW = """
    UPDATE jobs SET confirmed = false, poll_at = %(now)s, heard_at = %(now)s, updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending'
    """

    async def _queued(
        self, connection: Connection, delivery: Delivery, notice: JobNotice, known: Known, now: datetime
    ) -> Outcome:
        """A job that waits for an approval is looked at before it counts, whichever delivery came first."""
        confirmed = notice.confirmed and not known.waited
        if await self._insert(connection, delivery, notice, now, confirmed=confirmed):
            return Outcome.JOB_STORED
        await connection.execute(self.LOOK_AGAIN, {"job_id": notice.job_id, "now": now})
        return Outcome.JOB_ALREADY_EXISTS

    async def _waiting(self, connection: Connection, notice: JobNotice, now: datetime) -> Outcome:
        """An approval is asked for: what was taken for demand is none until GitHub says otherwise."""
        cursor = await connection.execute(self.WITHDRAW, {"job_id": notice.job_id, "now": now})
        return Outcome.JOB_ALREADY_EXISTS if cursor.rowcount else Outcome.IGNORED_ACTION

    OUR_RUNNER = "SELECT 1 AS one FROM workers WHERE name = %(runner_name)s AND entity_id = %(entity_id)s"

    async def _runs_here(self, connection: Connection, notice: JobNotice) -> bool:
        """Whether a runner of ours has the job: GitHub goes by labels and group, whomever it was made for."""
        values = {"runner_name": notice.runner_name, "entity_id": notice.entity.id}
        return await (await connection.execute(self.OUR_RUNNER, values)).fetchone() is not None

    async def _insert(
        self, connection: Connection, delivery: Delivery, notice: JobNotice, now: datetime, *, confirmed: bool
    ) -> bool:
        values = self._job_values(delivery, notice, now, confirmed=confirmed)
        return (await connection.execute(self.INSERT, values)).rowcount == 1

    def _job_values(
        self, delivery: Delivery, notice: JobNotice, now: datetime, *, confirmed: bool
    ) -> dict[str, Any]:
        pool = self._catalogue.serving(notice.labels)
        return {
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
            "poll_at": now + (PENDING_SILENCE[0] if confirmed else AT_ONCE),
            "created_at": notice.created_at,
            "now": now,
        }

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

    async def _completed(
        self, connection: Connection, delivery: Delivery, notice: JobNotice, now: datetime
    ) -> Outcome:
        """GitHub has finished the job, whatever the conclusion; without a row it creates one only if it ran here."""
        values = {**ending_of(notice), "job_id": notice.job_id, "now": now}
        if (await connection.execute(self.COMPLETE, values)).rowcount:
            return Outcome.JOB_MARKED_COMPLETED
        if await (await connection.execute(self.EXISTS, {"job_id": notice.job_id})).fetchone():
            return Outcome.JOB_ALREADY_EXISTS
        if not await self._runs_here(connection, notice):
            return Outcome.JOB_NOT_FOUND
        await self._insert(connection, delivery, notice, now, confirmed=True)
        await connection.execute(self.COMPLETE, values)
        return Outcome.JOB_MARKED_COMPLETED

    def _event_values(self, delivery: Delivery, outcome: Outcome, now: datetime) -> dict[str, Any]:
        kind, fields, detail = self._described(delivery)
        return {
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
        }

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
                        **_ended(notice),
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


def _ended(notice: JobNotice) -> dict[str, Any]:
    """What an event tells of a start or an end; GitHub gives jobs that are only queued a start too."""
    told = ending_of(notice, as_text=True)
    return {**told, "started_at": None} if notice.action == "queued" else told


ENDING_FIELDS = ("conclusion", "runner_name", "started_at", "completed_at")


def ending_of(notice: JobNotice, *, as_text: bool = False) -> dict[str, Any]:
    """The fields by which a job ends, as parameters or as JSON."""
    values: dict[str, Any] = {name: getattr(notice, name) for name in ENDING_FIELDS}
    if as_text:
        return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in values.items()}
    return values
