"""`access.forkPullRequests: deny`: whose code a run would execute, asked with one request per run.

What is known is kept in memory: after a restart the runs that still wait are asked once more.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial

import structlog

from controller.decide.budgets import repair_allowed
from controller.decide.pace import is_time
from controller.domain.constants import FAILED_AGAIN
from controller.domain.jobs import Job
from controller.errors import GitHubError
from controller.ports import Clock, GitHub
from controller.reconcile.beside import Beside, all_of

log = structlog.get_logger()

AT_ONCE = 8


class ForkGate:
    """Which runs come from a fork, as far as GitHub has said."""

    def __init__(self, github: GitHub, clock: Clock, beside: Beside) -> None:
        self._github = github
        self._clock = clock
        self._beside = beside
        self._foreign: dict[int, bool] = {}
        self._failed_at: dict[int, datetime] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    def judge(self, jobs: Iterable[Job]) -> Mapping[int, bool | None]:
        """For the run of every pending job: from a fork or not; None where GitHub is being asked."""
        runs = {job.run_id: job for job in jobs}
        self._foreign = {run_id: known for run_id, known in self._foreign.items() if run_id in runs}
        self._failed_at = {run_id: at for run_id, at in self._failed_at.items() if run_id in runs}
        now = self._clock.now()
        unknown = {
            run_id: job
            for run_id, job in runs.items()
            if run_id not in self._foreign and is_time(self._failed_at.get(run_id), FAILED_AGAIN, now)
        }
        if unknown:
            self._beside.start("fork_pull_requests", partial(self._ask_all, unknown.values()))
        return {run_id: self._foreign.get(run_id) for run_id in runs}

    async def _ask_all(self, jobs: Iterable[Job]) -> bool:
        return any(await all_of(self._ask(job) for job in jobs))

    async def _ask(self, job: Job) -> bool:
        """Ask about one run; True if it is known now."""
        async with self._places:
            if not repair_allowed(self._github.budget(job.installation_id), self._clock.now()):
                return False
            try:
                run = await self._github.get_run(job.scope, job.repo, job.run_id)
            except GitHubError as error:
                log.warning("run.unknown", run_id=job.run_id, error=str(error))
                self._failed_at[job.run_id] = self._clock.now()
                return False
        self._foreign[job.run_id] = run.foreign
        return True
