"""sync_jobs: ask GitHub about the jobs that have been silent, and only about those; beside the loop.

Due jobs of one run are asked with one request; a job missing there is asked for by its own GET before anything
is concluded. An answer that does not come leaves the row as it is.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import structlog

from controller.decide.jobs import judge_missing, judge_run, judge_sighting, needs_run, put_off
from controller.decide.milestones import reached_by_repair
from controller.domain.changes import FailJob, JobChange
from controller.domain.constants import CLEANUP_ONLY_SHARE
from controller.domain.jobs import Job, JobStatus
from controller.domain.reasons import JobFailure
from controller.domain.sightings import JobSighting
from controller.errors import GitHubError, GitHubNotFound, InstallationGone, InstallationSuspended
from controller.ports import Budget, Clock, GitHub, Jobs
from controller.reconcile.beside import Beside
from controller.settings import File
from controller.telemetry.metrics import Metrics
from controller.telemetry.milestones import Milestones

log = structlog.get_logger()

AT_MOST = 500  # due jobs looked at in one iteration
AT_ONCE = 8


class SyncJobs:
    """One step of the loop."""

    def __init__(
        self, file: File, jobs: Jobs, github: GitHub, clock: Clock, metrics: Metrics, beside: Beside
    ) -> None:
        self._stuck_age = file.timings.stuck_queued_age
        self._jobs = jobs
        self._github = github
        self._clock = clock
        self._milestones = Milestones(metrics)
        self._beside = beside
        self._places = asyncio.Semaphore(AT_ONCE)

    async def run(self, epoch: int) -> None:
        """Have GitHub asked about what is due."""
        due = await self._jobs.due(self._clock.now(), AT_MOST)
        if due:
            self._beside.start("sync_jobs", partial(self._repair, due, epoch))

    async def _repair(self, due: Sequence[Job], epoch: int) -> bool:
        """Look at these, then write what was learnt; True if a job got further."""
        runs: dict[tuple[int, str, int], list[Job]] = defaultdict(list)
        for job in due:
            if repair_allowed(self._github.budget(job.installation_id)):
                runs[(job.installation_id, job.repo, job.run_id)].append(job)
        looks = await asyncio.gather(*(self._look(jobs, epoch) for jobs in runs.values()))
        changes = [change for look in looks for change in look]
        asked = {job.job_id: job for job in due}
        applied = await self._jobs.apply(changes, epoch, self._clock.now())
        for moved in applied:
            log.info("job.repaired", job_id=moved.job_id, change=type(moved).__name__)
            for milestone in reached_by_repair(asked[moved.job_id], moved):
                self._milestones.note(milestone)
        return bool(applied)

    async def _look(self, jobs: Sequence[Job], epoch: int) -> list[JobChange]:
        async with self._places:
            try:
                return await self._ask(jobs)
            except InstallationGone:
                return await self._installation_gone(jobs, epoch)
            except InstallationSuspended:
                self._github.forget_installation(jobs[0].installation_id)
            except GitHubError as error:
                log.warning("job.look_failed", run_id=jobs[0].run_id, error=str(error))
            return [put_off(job, self._clock.now()) for job in jobs]

    async def _ask(self, jobs: Sequence[Job]) -> list[JobChange]:
        first = jobs[0]
        listed: dict[int, JobSighting] = {}
        if len(jobs) > 1:
            try:
                found = await self._github.list_run_jobs(first.scope, first.repo, first.run_id)
                listed = {seen.job_id: seen for seen in found}
            except InstallationGone:
                raise
            except GitHubNotFound:
                listed = {}  # each is asked for by itself
        changes: list[JobChange] = []
        stuck: list[Job] = []
        for job in jobs:
            seen = listed.get(job.job_id) or await self._one(job)
            if seen is None:
                changes.append(judge_missing(job, self._clock.now()))
            elif needs_run(job, seen, self._clock.now(), self._stuck_age):
                stuck.append(job)
            else:
                changes.append(judge_sighting(job, seen, self._clock.now()))
        if stuck:
            run = await self._github.get_run(first.scope, first.repo, first.run_id)
            changes.extend(judge_run(job, run, self._clock.now()) for job in stuck)
        return changes

    async def _one(self, job: Job) -> JobSighting | None:
        """The job by its own GET; None only if GitHub says 404 and the installation still sees the repository."""
        try:
            return await self._github.get_job(job.scope, job.repo, job.job_id)
        except InstallationGone:
            raise
        except GitHubNotFound:
            await self._github.find_repo_installation(job.app_id, job.repo)
            return None

    async def _installation_gone(self, jobs: Sequence[Job], epoch: int) -> list[JobChange]:
        """Resolve it once more: an App that was installed anew has a new id."""
        first, now = jobs[0], self._clock.now()
        self._github.forget_installation(first.installation_id)
        try:
            found = await self._github.find_repo_installation(first.app_id, first.repo)
        except InstallationGone:
            message = f"the App is not installed at {first.entity.name}"
            return [
                FailJob(job.job_id, JobFailure.INSTALLATION_GONE, message)
                if job.status is JobStatus.PENDING
                else put_off(job, now)
                for job in jobs
            ]
        except GitHubError as error:
            log.warning("job.look_failed", run_id=first.run_id, error=str(error))
            return [put_off(job, now) for job in jobs]
        if found.installation_id != first.installation_id:
            await self._jobs.rescope([job.job_id for job in jobs], found.installation_id, epoch, now)
        return [put_off(job, now) for job in jobs]


def repair_allowed(budget: Budget) -> bool:
    """Repair is the first class to stop when an installation's requests run low."""
    if budget.blocked_until is not None:
        return False
    return not budget.limit or budget.remaining >= budget.limit * CLEANUP_ONLY_SHARE
