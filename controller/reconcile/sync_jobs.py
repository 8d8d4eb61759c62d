"""sync_jobs: ask GitHub about the jobs that have been silent, and only about those; beside the loop.

Due jobs of one run are asked with one request; a job missing there is asked for by its own GET before anything
is concluded, and a job that is listed there but was never heard of is taken in. An answer that does not come leaves
the row as it is.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import structlog

from controller.decide.budgets import back_at, repair_allowed
from controller.decide.jobs import (
    judge_gone,
    judge_missing,
    judge_run,
    judge_sighting,
    needs_run,
    put_off,
)
from controller.decide.milestones import reached_by_repair
from controller.domain.changes import Hear, JobChange, PutOff
from controller.domain.constants import GONE_EVERY
from controller.domain.jobs import Job
from controller.domain.sightings import JobSighting
from controller.errors import GitHubError, GitHubNotFound, InstallationGone, InstallationSuspended
from controller.ports import Clock, GitHub, Jobs
from controller.reconcile.beside import Beside, all_of
from controller.reconcile.queued_sweep import Siblings
from controller.settings import File
from controller.telemetry.metrics import Metrics
from controller.telemetry.milestones import Milestones

log = structlog.get_logger()

AT_MOST = 500  # due jobs looked at in one iteration
AT_ONCE = 8

Run = tuple[int, str, int]  # installation, repository, run


class SyncJobs:
    """One step of the loop."""

    def __init__(
        self,
        file: File,
        jobs: Jobs,
        github: GitHub,
        siblings: Siblings,
        clock: Clock,
        metrics: Metrics,
        beside: Beside,
    ) -> None:
        self._stuck_age = file.timings.stuck_queued_age
        self._jobs = jobs
        self._github = github
        self._siblings = siblings
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
        """Look at these, then write what was learnt; True if demand or supply is another one now."""
        runs: dict[Run, list[Job]] = defaultdict(list)
        changes: list[JobChange] = []
        # A token from before proves nothing: the next one says whether it is so, or was told late.
        for installation in await self._jobs.suspended({job.installation_id for job in due}):
            self._github.forget_installation(installation)
        for job in due:
            rest = self._resting(job)
            if rest is None:
                runs[job.installation_id, job.repo, job.run_id].append(job)
            else:
                changes.append(rest)
        round_ = _Round(epoch)
        for look in await all_of(self._look(jobs, round_) for jobs in runs.values()):
            changes.extend(look)
        asked = {job.job_id: job for job in due}
        applied = await self._jobs.apply(changes, epoch, self._clock.now())
        for moved in applied:
            log.info("job.repaired", job_id=moved.job_id, change=type(moved).__name__)
            for milestone in reached_by_repair(asked[moved.job_id], moved):
                self._milestones.note(milestone)
        return bool(applied) or round_.learnt > 0 or _released(due, changes)

    def _resting(self, job: Job) -> JobChange | None:
        """Jobs of an installation that is low on requests wait, so that those of others are not kept behind them."""
        now, budget = self._clock.now(), self._github.budget(job.installation_id)
        if repair_allowed(budget, now):
            return None
        until = back_at(budget, now)
        return put_off(job, now) if until is None else PutOff(job.job_id, until)

    async def _look(self, jobs: Sequence[Job], round_: "_Round") -> list[JobChange]:
        first = jobs[0]
        async with self._places:
            try:
                if first.installation_id in round_.suspended:
                    return [put_off(job, self._clock.now(), GONE_EVERY) for job in jobs]
                return await self._ask(jobs, round_)
            except InstallationGone:
                return await self._installation_gone(jobs, round_.epoch)
            except InstallationSuspended:
                round_.suspended.add(first.installation_id)
                self._github.forget_installation(first.installation_id)
                return [put_off(job, self._clock.now(), GONE_EVERY) for job in jobs]
            except GitHubError as error:
                log.warning("job.look_failed", run_id=first.run_id, error=str(error))
                return [put_off(job, self._clock.now()) for job in jobs]

    async def _ask(self, jobs: Sequence[Job], round_: "_Round") -> list[JobChange]:
        first = jobs[0]
        listed = await self._list(first)
        round_.learnt += await self._siblings.learn(first.home, listed, round_.epoch)
        by_id = {seen.job_id: seen for seen in listed}
        changes: list[JobChange] = []
        stuck: list[Job] = []
        for job in jobs:
            seen = by_id.get(job.job_id) or await self._one(job)
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

    async def _list(self, job: Job) -> Sequence[JobSighting]:
        """The run's jobs; none if GitHub does not show the run: then each job is asked for by itself."""
        try:
            return await self._github.list_run_jobs(job.scope, job.repo, job.run_id)
        except InstallationGone:
            raise
        except GitHubNotFound:
            return ()

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
            at_work = await self._jobs.at_work([job.job_id for job in jobs])
            return [judge_gone(job, job.job_id in at_work, now) for job in jobs]
        except GitHubError as error:
            log.warning("job.look_failed", run_id=first.run_id, error=str(error))
            return [put_off(job, now) for job in jobs]
        if found.installation_id == first.installation_id:
            return [put_off(job, now) for job in jobs]
        await self._jobs.rescope([job.job_id for job in jobs], found.installation_id, epoch, now)
        return [PutOff(job.job_id, now) for job in jobs]


class _Round:
    """What the looks of one round share."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.suspended: set[int] = set()
        self.learnt = 0


def _released(due: Sequence[Job], changes: Sequence[JobChange]) -> bool:
    """Whether a job that had waited for an approval is demand now."""
    waited = {job.job_id for job in due if not job.confirmed}
    return any(isinstance(each, Hear) and each.confirmed and each.job_id in waited for each in changes)
