"""The loop's side of `jobs`: what is active, what is due, and the guarded, forward-only changes."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, assert_never

from psycopg.types.json import Jsonb

from controller.decide.attempts import after_failure
from controller.domain.changes import Complete, FailJob, Hear, JobChange, PutOff, Start, Suspect
from controller.domain.jobs import Job
from controller.domain.reasons import Reason
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.rows import JOB_COLUMNS, job_of


class JobStore:
    """Jobs as the reconciler reads and writes them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    DUE = f"""
    SELECT {JOB_COLUMNS} FROM jobs WHERE status IN ('pending', 'running') AND poll_at <= %(now)s
    ORDER BY poll_at LIMIT %(limit)s
    """

    async def due(self, now: datetime, limit: int) -> list[Job]:
        """Active jobs that have been silent for too long, the longest overdue first."""
        return await self._select(self.DUE, {"now": now, "limit": limit})

    async def _select(self, query: str, values: dict[str, Any]) -> list[Job]:
        return [job_of(row) for row in await self._database.fetch(query, values)]

    NEXT_DUE = """
    SELECT min(retry_after) AS at FROM jobs
    WHERE status = 'pending' AND mark IS NULL AND retry_after > %(now)s
    """

    async def next_due(self, now: datetime) -> datetime | None:
        """When the next job's back-off ends."""
        rows = await self._database.fetch(self.NEXT_DUE, {"now": now})
        return rows[0]["at"] if rows else None

    AT_WORK = """
    SELECT j.job_id FROM jobs j JOIN workers w ON w.name = j.runner_name AND w.entity_id = j.entity_id
    WHERE j.job_id = ANY(%(job_ids)s) AND j.status = 'running' AND w.status IN ('pending', 'running')
    """

    async def at_work(self, job_ids: Collection[int]) -> frozenset[int]:
        """Which of these jobs run on a worker of ours that has not ended."""
        rows = await self._database.fetch(self.AT_WORK, {"job_ids": list(job_ids)})
        return frozenset(row["job_id"] for row in rows)

    async def apply(self, changes: Sequence[JobChange], epoch: int, now: datetime) -> list[JobChange]:
        """Write what sync_jobs concluded; the changes that really moved a job."""
        if not changes:
            return []
        moved = []
        for change in changes:
            # One job at a time: holding one while waiting for another would end in a deadlock with the loop's steps.
            async with self._database.leading(epoch) as connection:
                if await self._apply(connection, change, now):
                    moved.append(change)
        return moved

    HEAR = """
    UPDATE jobs SET poll_at = %(poll_at)s, polls = polls + 1, confirmed = %(confirmed)s, missing_since = NULL,
        updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    """
    START = """
    UPDATE jobs SET status = 'running', runner_name = COALESCE(%(runner_name)s, runner_name),
        started_at = %(started_at)s, poll_at = %(poll_at)s, polls = 0, confirmed = true, missing_since = NULL,
        skip_reason = NULL, skip_since = NULL, skip_detail = '{}', updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending'
    """
    COMPLETE = """
    UPDATE jobs SET status = 'completed', conclusion = %(conclusion)s,
        runner_name = COALESCE(runner_name, %(runner_name)s), started_at = COALESCE(started_at, %(started_at)s),
        completed_at = %(completed_at)s, skip_reason = NULL, skip_since = NULL, skip_detail = '{}',
        updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    """
    FAIL = """
    UPDATE jobs SET status = 'failed', failure_info = %(info)s, completed_at = %(now)s, skip_reason = NULL,
        skip_since = NULL, skip_detail = '{}', updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    """
    PUT_OFF = """
    UPDATE jobs SET poll_at = %(poll_at)s WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    """
    SUSPECT = """
    UPDATE jobs SET poll_at = %(poll_at)s, missing_since = COALESCE(missing_since, %(now)s), updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status IN ('pending', 'running')
    """
    EVENT = """
    INSERT INTO events (at, source, kind, job_id, detail)
    VALUES (%(now)s, 'controller', %(kind)s, %(job_id)s, %(detail)s)
    """

    async def _apply(self, connection: Connection, change: JobChange, now: datetime) -> bool:
        values: dict[str, Any] = {"job_id": change.job_id, "now": now}
        match change:
            case Hear(_, poll_at, confirmed):
                await connection.execute(self.HEAR, {**values, "poll_at": poll_at, "confirmed": confirmed})
                return False
            case PutOff(_, poll_at):
                await connection.execute(self.PUT_OFF, {**values, "poll_at": poll_at})
                return False
            case Suspect(_, poll_at):
                await connection.execute(self.SUSPECT, {**values, "poll_at": poll_at})
                return False
            case Start(_, runner_name, started_at, poll_at):
                values |= {"runner_name": runner_name, "started_at": started_at, "poll_at": poll_at}
                query, kind, detail = self.START, "job.started", {"runner_name": runner_name}
            case Complete(_, conclusion, runner_name, started_at, completed_at):
                values |= {"conclusion": conclusion, "runner_name": runner_name}
                values |= {"started_at": started_at, "completed_at": completed_at}
                query, kind, detail = self.COMPLETE, "job.completed", {"conclusion": conclusion}
            case FailJob(_, reason, message):
                values["info"] = Jsonb({"reason": reason.value, "message": message})
                query, kind, detail = self.FAIL, "job.failed", {"reason": reason.value, "message": message}
            case _:
                assert_never(change)
        cursor = await connection.execute(query, values)
        if cursor.rowcount:
            await connection.execute(
                self.EVENT, {"now": now, "kind": kind, "job_id": change.job_id, "detail": Jsonb(detail)}
            )
        return bool(cursor.rowcount)

    SKIP = """
    UPDATE jobs SET skip_since = CASE WHEN skip_reason IS DISTINCT FROM %(reason)s THEN %(now)s
                                      ELSE skip_since END,
        skip_reason = %(reason)s, skip_detail = %(detail)s, pool = %(pool)s, updated_at = %(now)s
    WHERE job_id = ANY(%(job_ids)s) AND status = 'pending'
    """

    async def store_skips(
        self, skips: Sequence[tuple[int, str | None, dict[str, Any], str | None]], epoch: int, now: datetime
    ) -> None:
        """Keep why each of these pending jobs gets no worker now (None: it gets one); one statement a kind."""
        if not skips:
            return
        alike: dict[tuple[str | None, str, str | None], list[int]] = defaultdict(list)
        for job_id, reason, detail, pool in skips:
            alike[(reason, json.dumps(detail, sort_keys=True), pool)].append(job_id)
        async with self._database.leading(epoch) as connection:
            for (reason, text, pool), job_ids in alike.items():
                values = {"reason": reason, "detail": Jsonb(json.loads(text)), "pool": pool}
                await connection.execute(self.SKIP, {**values, "job_ids": job_ids, "now": now})

    RESCOPE = """
    UPDATE jobs SET installation_id = %(installation_id)s, updated_at = %(now)s
    WHERE job_id = ANY(%(job_ids)s) AND status IN ('pending', 'running')
    """

    async def rescope(self, job_ids: Sequence[int], installation_id: int, epoch: int, now: datetime) -> None:
        """The App was installed anew: these active jobs belong to that installation."""
        async with self._database.leading(epoch) as connection:
            values = {"job_ids": list(job_ids), "installation_id": installation_id, "now": now}
            await connection.execute(self.RESCOPE, values)

    ATTEMPTS = """
    SELECT attempts, own_faults FROM jobs WHERE job_id = %(job_id)s AND status = 'pending' FOR UPDATE
    """
    COUNT_FAILURE = """
    UPDATE jobs SET attempts = %(attempts)s, own_faults = %(own_faults)s, last_failure = %(reason)s,
        retry_after = %(retry_after)s, mark = CASE WHEN %(gave_up)s THEN 'gave_up' ELSE mark END,
        updated_at = %(now)s
    WHERE job_id = %(job_id)s AND status = 'pending'
    """

    @classmethod
    async def count_failure(
        cls,
        connection: Connection,
        job_id: int,
        reason: Reason,
        *,
        own_fault: bool,
        idle_since: datetime | None,
        now: datetime,
    ) -> None:
        """Note a failed attempt on the job it was made for, in the transaction that fails the worker."""
        row = await (await connection.execute(cls.ATTEMPTS, {"job_id": job_id})).fetchone()
        if row is None:
            return
        after = after_failure(
            row["attempts"], row["own_faults"], reason, now, own_fault=own_fault, idle_since=idle_since
        )
        if after is None:
            return
        await connection.execute(
            cls.COUNT_FAILURE,
            {
                "job_id": job_id,
                "attempts": after.attempts,
                "own_faults": after.own_faults,
                "reason": reason.value,
                "retry_after": after.retry_after,
                "gave_up": after.gave_up,
                "now": now,
            },
        )

    SUSPENDED = """
    SELECT installation_id FROM (
        SELECT DISTINCT ON (installation_id) installation_id, kind FROM events
        WHERE kind LIKE 'installation%%' AND installation_id = ANY(%(ids)s)
          AND kind IN ('installation.suspend', 'installation.unsuspend', 'installation.created',
                       'installation.deleted', 'installation.auth_suspended', 'installation.auth_ok')
        ORDER BY installation_id, id DESC
    ) latest WHERE kind IN ('installation.suspend', 'installation.deleted', 'installation.auth_suspended')
    """

    async def suspended(self, installations: Collection[int]) -> frozenset[int]:
        """Which of these installations were last heard of as suspended or gone."""
        rows = await self._database.fetch(self.SUSPENDED, {"ids": sorted(installations)})
        return frozenset(row["installation_id"] for row in rows)
