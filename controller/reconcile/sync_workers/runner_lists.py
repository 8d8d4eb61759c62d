"""Which scopes' runner lists are read in an iteration: only where somebody needs to know."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import structlog

from controller.domain.constants import (
    CLEANUP_EVERY,
    CLEANUP_SCOPE_AGE,
    PROVISION_ONLY_SHARE,
    RUNNER_LIST_EVERY,
)
from controller.domain.jobs import Scope
from controller.domain.sightings import Unknown
from controller.domain.views import HealthLimits, RunnerList
from controller.domain.workers import Worker
from controller.errors import GitHubError
from controller.ports import Budget, GitHub, Workers

log = structlog.get_logger()

LOOKS = 2  # a leftover is deleted only when it was seen twice
AT_ONCE = 8


class RunnerLists:
    """Reads lists for the health checks and for GitHubCleanup, no more often than needed."""

    def __init__(
        self, github: GitHub, workers: Workers, limits: HealthLimits, suspects: Callable[[Scope], bool]
    ) -> None:
        self._github = github
        self._workers = workers
        self._limits = limits
        self._suspects = suspects
        self._read_at: dict[Scope, datetime] = {}
        self._looks: dict[Scope, int] | None = None  # how many more looks each scope gets; None: just started
        self._places = asyncio.Semaphore(AT_ONCE)

    def worth_a_look(self, scopes: Iterable[Scope]) -> None:
        """Workers have ended there: their runners may have stayed behind."""
        for scope in scopes:
            if self._looks is not None:
                self._looks[scope] = LOOKS

    async def read(self, workers: Iterable[Worker], now: datetime) -> dict[Scope, RunnerList]:
        """The lists that are due; one that fails or is not allowed is Unknown."""
        if self._looks is None:
            recent = await self._workers.scopes(now - CLEANUP_SCOPE_AGE)
            self._looks = dict.fromkeys(recent, LOOKS)
        due = [scope for scope in self._wanted(workers, now) if self._allowed(scope, now)]
        lists = await asyncio.gather(*(self._read(scope) for scope in due))
        found = dict(zip(due, lists, strict=True))
        for scope, listed in found.items():
            self._read_at[scope] = now
            if not isinstance(listed, Unknown) and not self._suspects(scope):
                self._looks[scope] = max(0, self._looks.get(scope, 0) - 1)
        return found

    def _wanted(self, workers: Iterable[Worker], now: datetime) -> set[Scope]:
        wanted = {worker.scope for worker in workers if self._unheard(worker, now)}
        due = {scope for scope in wanted if self._age(scope, now) >= RUNNER_LIST_EVERY}
        for scope, looks in (self._looks or {}).items():
            patience = RUNNER_LIST_EVERY if self._suspects(scope) else CLEANUP_EVERY
            if (looks > 0 or self._suspects(scope)) and self._age(scope, now) >= patience:
                due.add(scope)
        return due

    def _unheard(self, worker: Worker, now: datetime) -> bool:
        """A worker without a job that should have come online by now."""
        if not worker.status.live or worker.job_id is not None or worker.pod_at is None:
            return False
        return now - worker.pod_at > self._limits.registration_of(worker.pool) / 2

    def _age(self, scope: Scope, now: datetime) -> timedelta:
        read = self._read_at.get(scope)
        return timedelta.max if read is None else now - read

    def _allowed(self, scope: Scope, now: datetime) -> bool:
        return cleanup_allowed(self._github.budget(scope.installation_id), now)

    async def _read(self, scope: Scope) -> RunnerList:
        async with self._places:
            try:
                return await self._github.list_runners(scope)
            except GitHubError as error:
                log.warning("runners.unknown", entity=scope.entity.name, error=str(error))
                return Unknown(str(error))


def cleanup_allowed(budget: Budget, now: datetime) -> bool:
    """Cleanup goes on longer than repair, but not to the last request."""
    if budget.blocked_until is not None and budget.blocked_until > now:
        return False
    return not budget.limit or budget.remaining >= budget.limit * PROVISION_ONLY_SHARE
