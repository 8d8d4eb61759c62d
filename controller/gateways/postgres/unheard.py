"""What the sweep of runs reads and writes: where jobs came from lately, what is known of runs, what was learnt."""

from collections.abc import Collection, Sequence
from datetime import datetime

from controller.domain.jobs import Home, Job
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.events import note_event
from controller.gateways.postgres.rows import entity_of


class UnheardStore:
    """Jobs whose webhooks were lost for good."""

    def __init__(self, database: Database) -> None:
        self._database = database

    HOMES = """
    SELECT DISTINCT ON (app_id, repo) app_id, repo, installation_id, entity_id, entity_name, entity_type, private
    FROM jobs WHERE seen_at >= %(since)s ORDER BY app_id, repo, seen_at DESC
    """

    async def homes(self, since: datetime) -> list[Home]:
        """The repositories that had a job since then."""
        rows = await self._database.fetch(self.HOMES, {"since": since})
        return [
            Home(entity_of(row), row["repo"], row["private"], row["app_id"], row["installation_id"])
            for row in rows
        ]

    ACTIVE = """
    SELECT DISTINCT run_id FROM jobs WHERE run_id = ANY(%(run_ids)s) AND status IN ('pending', 'running')
    """

    async def active_runs(self, run_ids: Collection[int]) -> frozenset[int]:
        """Which of these runs have a job that has not ended."""
        rows = await self._database.fetch(self.ACTIVE, {"run_ids": list(run_ids)})
        return frozenset(row["run_id"] for row in rows)

    KNOWN = "SELECT job_id FROM jobs WHERE job_id = ANY(%(job_ids)s)"

    async def known(self, job_ids: Collection[int]) -> frozenset[int]:
        """Which of these jobs have a row."""
        rows = await self._database.fetch(self.KNOWN, {"job_ids": list(job_ids)})
        return frozenset(row["job_id"] for row in rows)

    LEARN = """
    INSERT INTO jobs (job_id, name, html_url, entity_id, entity_name, entity_type, repo, private, app_id,
        installation_id, labels, pool, run_id, run_attempt, status, runner_name, learnt_from, heard_at, poll_at,
        created_at, seen_at, started_at, updated_at)
    VALUES (%(job_id)s, %(name)s, %(html_url)s, %(entity_id)s, %(entity_name)s, %(entity_type)s, %(repo)s,
        %(private)s, %(app_id)s, %(installation_id)s, %(labels)s, %(pool)s, %(run_id)s, %(run_attempt)s,
        %(status)s, %(runner_name)s, %(learnt_from)s, %(now)s, %(poll_at)s, %(created_at)s, %(now)s,
        %(started_at)s, %(now)s)
    ON CONFLICT (job_id) DO NOTHING
    """

    async def learn(self, jobs: Sequence[Job], epoch: int, now: datetime) -> int:
        """Take these in as if their webhooks had come; how many were new."""
        new = 0
        async with self._database.leading(epoch) as connection:
            for job in jobs:
                values = {
                    "job_id": job.job_id,
                    "name": job.name,
                    "html_url": job.html_url,
                    "entity_id": job.entity.id,
                    "entity_name": job.entity.name,
                    "entity_type": job.entity.type.value,
                    "repo": job.repo,
                    "private": job.private,
                    "app_id": job.app_id,
                    "installation_id": job.installation_id,
                    "labels": list(job.labels),
                    "pool": job.pool,
                    "run_id": job.run_id,
                    "run_attempt": job.run_attempt,
                    "status": job.status.value,
                    "runner_name": job.runner_name,
                    "learnt_from": job.learnt_from,
                    "poll_at": job.poll_at,
                    "created_at": job.created_at,
                    "started_at": job.started_at,
                    "now": now,
                }
                cursor = await connection.execute(self.LEARN, values)
                if cursor.rowcount:
                    new += 1
                    detail = {"from": job.learnt_from, "status": job.status.value}
                    await note_event(connection, "job.learnt", now, job_id=job.job_id, detail=detail)
        return new
