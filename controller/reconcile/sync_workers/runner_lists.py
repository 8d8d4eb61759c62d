"""Which scopes' runner lists are read in an iteration: only where somebody needs to know."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

import structlog

from controller.decide.budgets import cleanup_allowed
from controller.decide.pace import is_time
from controller.domain.constants import CLEANUP_EVERY, CLEANUP_SCOPE_AGE, RUNNER_LIST_EVERY
from controller.domain.jobs import Scope
from controller.domain.sightings import Unknown
from controller.domain.views import HealthLimits, RunnerList
from controller.domain.workers import Worker
from controller.errors import GitHubError, GitHubNotFound, InstallationGone, InstallationSuspended
from controller.ports import Clock, GitHub, Workers
from controller.reconcile.beside import Beside
from controller.reconcile.moved import Moved

log = structlog.get_logger()

LOOKS = 2  # a leftover is deleted only when it was seen twice
AT_ONCE = 8
COMMIT_LAG = timedelta(minutes=1)  # the time in a row is taken before its commit


class RunnerLists:
    """Has lists read beside the loop, for the health checks and for GitHubCleanup, no more often than needed."""

    def __init__(
        self,
        github: GitHub,
        workers: Workers,
        limits: HealthLimits,
        suspects: Callable[[Scope], bool],
        clock: Clock,
        beside: Beside,
        moved: Moved,
    ) -> None:
        self._github = github
        self._workers = workers
        self._limits = limits
        self._suspects = suspects
        self._clock = clock
        self._beside = beside
        self._moved = moved
        self._read_at: dict[Scope, datetime] = {}
        self._looks: dict[Scope, int] = {}  # how many more looks each scope gets
        self._noted_at: datetime | None = None
        self._fresh: dict[Scope, RunnerList] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    def take(self) -> dict[Scope, RunnerList]:
        """The lists that came in since the last call; one that failed is Unknown."""
        fresh, self._fresh = self._fresh, {}
        return fresh

    async def refresh(self, workers: Iterable[Worker], epoch: int) -> None:
        """Have those read that are due."""
        now = self._clock.now()
        await self._note_scopes(now)
        for scope in self._wanted(workers, now):
            if self._allowed(scope, now):
                self._beside.start(f"list runners {scope}", partial(self._read, scope, epoch))

    async def _note_scopes(self, now: datetime) -> None:
        """At first every scope used lately, quiet ones too; then those where workers fail: their runners may stay.

        Those in a while: GitHub clears up itself.
        """
        if self._noted_at is None:
            recent = await self._workers.scopes(now - CLEANUP_SCOPE_AGE)
            self._looks = dict.fromkeys(recent, LOOKS)
        elif not is_time(self._noted_at, RUNNER_LIST_EVERY, now):
            return
        else:
            for scope in await self._workers.failed_scopes(self._noted_at - COMMIT_LAG):
                self._looks[scope] = LOOKS
                self._read_at.setdefault(scope, now)
        self._noted_at = now

    def _wanted(self, workers: Iterable[Worker], now: datetime) -> set[Scope]:
        wanted = {worker.scope for worker in workers if self._unheard(worker, now)}
        due = {scope for scope in wanted if is_time(self._read_at.get(scope), RUNNER_LIST_EVERY, now)}
        for scope, looks in self._looks.items():
            patience = RUNNER_LIST_EVERY if self._suspects(scope) else CLEANUP_EVERY
            if (looks > 0 or self._suspects(scope)) and is_time(self._read_at.get(scope), patience, now):
                due.add(scope)
        return due

    def _unheard(self, worker: Worker, now: datetime) -> bool:
        """A worker without a job that should have come online by now."""
        if not worker.status.live or worker.job_id is not None or worker.pod_at is None:
            return False
        return now - worker.pod_at > self._limits.registration_of(worker.pool) / 2

    def _allowed(self, scope: Scope, now: datetime) -> bool:
        return cleanup_allowed(self._github.budget(scope.installation_id), now)

    async def _read(self, scope: Scope, epoch: int) -> bool:
        async with self._places:
            self._read_at[scope] = self._clock.now()
            try:
                self._fresh[scope] = await self._github.list_runners(scope)
            except GitHubError as error:
                log.warning("runners.unknown", entity=scope.entity.name, error=str(error))
                self._fresh[scope] = Unknown(str(error))
                if isinstance(error, InstallationGone | InstallationSuspended):
                    self._looks.pop(scope, None)  # there is nothing to be cleaned up any more
                return isinstance(error, GitHubNotFound) and await self._follow(scope, epoch)
        if not self._suspects(scope):
            self._looks[scope] = max(0, self._looks.get(scope, 0) - 1)
        return True

    async def _follow(self, scope: Scope, epoch: int) -> bool:
        """Look where the owner has moved to: there as well for what stayed behind of workers that have ended."""
        found = await self._moved.follow(scope, epoch)
        if found is None:
            return False
        self._looks.pop(scope, None)
        self._looks[found] = LOOKS
        return True
