"""For what was never even attempted to be delivered: runs of our repositories are asked for jobs we never heard of.

Repositories with a job in the last day are asked every ten minutes, as the last class of requests and with ETags.
A run that has an active row here is not asked: sync_jobs looks at it, and learns of its other jobs the same way.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

import structlog

from controller.decide.budgets import repair_allowed
from controller.decide.pace import is_time
from controller.decide.siblings import find_unheard
from controller.domain.constants import QUEUED_SWEEP_EVERY, QUEUED_SWEEP_REPOS, QUEUED_SWEEP_RUNS
from controller.domain.jobs import Home
from controller.domain.sightings import JobSighting
from controller.errors import GitHubError
from controller.ports import Clock, GitHub, Unheard
from controller.reconcile.beside import Beside, all_of
from controller.settings import File

log = structlog.get_logger()

AT_ONCE = 4


class Siblings:
    """Takes in the jobs of listed runs that have no row."""

    def __init__(self, file: File, rows: Unheard, clock: Clock) -> None:
        self._catalogue = file.catalogue
        self._access = file.access
        self._rows = rows
        self._clock = clock

    def welcome(self, home: Home) -> bool:
        """Whether the settings let in the repository's jobs; of others there is nothing to learn."""
        return self._access.allows(home.entity.name, home.repo)

    async def learn(self, home: Home, listed: Sequence[JobSighting], epoch: int) -> int:
        """How many jobs of a run were unheard of; they are demand now, or bound to their runner."""
        if not listed or not self.welcome(home):
            return 0
        known = await self._rows.known([seen.job_id for seen in listed])
        now = self._clock.now()
        unheard = list(find_unheard(home, listed, known, self._catalogue, now))
        new = await self._rows.learn(unheard, epoch, now) if unheard else 0
        if new:
            log.warning("job.learnt", repo=home.repo, run_id=unheard[0].run_id, jobs=new)
        return new


class QueuedSweep:
    """One step of the loop."""

    def __init__(
        self, siblings: Siblings, rows: Unheard, github: GitHub, clock: Clock, beside: Beside
    ) -> None:
        self._siblings = siblings
        self._rows = rows
        self._github = github
        self._clock = clock
        self._beside = beside
        self._asked_at: datetime | None = None
        self._looked: dict[int, datetime] = {}  # when a run was last asked for its jobs
        self._places = asyncio.Semaphore(AT_ONCE)

    async def run(self, epoch: int) -> None:
        """Have the repositories asked if it is time."""
        now = self._clock.now()
        if is_time(self._asked_at, QUEUED_SWEEP_EVERY, now):
            self._asked_at = now
            self._beside.start("queued_sweep", partial(self._sweep, epoch, now))

    async def _sweep(self, epoch: int, now: datetime) -> bool:
        homes = await self._rows.homes(now - QUEUED_SWEEP_REPOS)
        found = await all_of(self._ask(home, epoch) for home in homes if self._siblings.welcome(home))
        self._looked = {run: at for run, at in self._looked.items() if now - at < QUEUED_SWEEP_REPOS}
        return any(found)

    async def _ask(self, home: Home, epoch: int) -> int:
        """Ask one repository; one that does not answer is asked in the next sweep."""
        found = 0
        async with self._places:
            if not repair_allowed(self._github.budget(home.installation_id), self._clock.now()):
                return 0
            try:
                runs = await self._github.list_active_runs(home.scope, home.repo)
                for run_id in await self._unwatched(run.run_id for run in runs):
                    self._looked[run_id] = self._clock.now()
                    listed = await self._github.list_run_jobs(home.scope, home.repo, run_id)
                    found += await self._siblings.learn(home, listed, epoch)
            except GitHubError as error:
                log.warning("runs.unknown", repo=home.repo, error=str(error))
        return found

    async def _unwatched(self, run_ids: Iterable[int]) -> list[int]:
        """Those that have not been asked, or not for the longest: most runs of a busy repository have no job for us."""
        listed = list(run_ids)
        watched = await self._rows.active_runs(listed)
        unwatched = [run_id for run_id in listed if run_id not in watched]
        unwatched.sort(key=lambda run_id: (run_id in self._looked, self._looked.get(run_id)))
        return unwatched[:QUEUED_SWEEP_RUNS]
