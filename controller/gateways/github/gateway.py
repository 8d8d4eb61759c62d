"""The GitHub gateway as the core sees it (`ports.GitHub`): thin methods over the modules beside this one."""

from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from controller.domain.auth import AuthAttempt
from controller.domain.checkup import AppFacts, InstallationFacts
from controller.domain.jobs import LabelSet, Scope
from controller.domain.schedules import StartedRun
from controller.domain.sightings import (
    DeliverySighting,
    InstallationSighting,
    JobSighting,
    Runner,
    RunSighting,
)
from controller.errors import GitHubError
from controller.gateways.github import checkup, deliveries, dispatches, jobs
from controller.gateways.github.app_auth import AppKeys
from controller.gateways.github.callers import Ask, Callers
from controller.gateways.github.client import Client, Deadlines, Observation
from controller.gateways.github.groups import RunnerGroup, RunnerGroups
from controller.gateways.github.runners import Runners
from controller.ports import Budget, Clock, JitRunner


class GitHubGateway:
    """Speaks to one GitHub as our Apps and their installations; an async context manager."""

    def __init__(
        self,
        api_url: str,
        apps: Mapping[str, Path],
        clock: Clock,
        *,
        runner_group: RunnerGroup,
        observe: Callable[[Observation], None],
        on_auth: Callable[[AuthAttempt], None] = lambda attempt: None,
        on_list: Callable[[Scope, GitHubError | None], None] = lambda scope, error: None,
        transport: httpx.AsyncBaseTransport | None = None,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> None:
        self._clock = clock
        self._on_list = on_list
        self._listing = deadlines.listing
        self._client = Client(api_url, clock, observe, deadlines, transport)
        self._callers = Callers(self._client, AppKeys(apps), clock, on_auth)
        self._groups = RunnerGroups(runner_group, self._asking, clock, deadlines.listing)
        self._runners = Runners(self._asking, self._groups, deadlines.listing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._groups.close()
        await self._callers.close()
        await self._client.close()

    async def ensure_runner_group(self, scope: Scope) -> int:
        """The id of our group in an organization, created if missing; 1 where groups cannot be had."""
        return await self._groups.ensure(scope)

    async def create_jit_runner(self, scope: Scope, name: str, labels: LabelSet, group_id: int) -> JitRunner:
        """Register a runner, at the pace GitHub allows; RateLimited rather than a wait."""
        self._callers.bucket(scope.installation_id).take_jit_call(self._clock.now())
        return await self._runners.create_jit(scope, name, labels, group_id)

    async def list_runners(self, scope: Scope) -> tuple[Runner, ...]:
        """All runners of the scope, every page; for organizations those of our group."""
        try:
            runners = await self._runners.list_all(scope)
        except GitHubError as error:  # a list may be incomplete though every answer looked fine
            self._on_list(scope, error)
            raise
        self._on_list(scope, None)
        return runners

    async def find_runner(self, scope: Scope, name: str) -> Runner | None:
        """The runner of exactly that name, or None if GitHub lists none."""
        return await self._runners.find(scope, name)

    async def delete_runner(self, scope: Scope, runner_id: int) -> None:
        """Delete a runner; gone already is fine. RunnerBusy: it runs a job and was left alone."""
        await self._runners.delete(scope, runner_id)

    async def get_job(self, scope: Scope, repo: str, job_id: int) -> JobSighting:
        """One job; GitHubNotFound on 404."""
        return await jobs.get_job(self._asking(scope), repo, job_id)

    async def list_run_jobs(self, scope: Scope, repo: str, run_id: int) -> tuple[JobSighting, ...]:
        """All jobs of a run, latest attempt, every page."""
        return await jobs.list_run_jobs(self._asking(scope), repo, run_id, self._listing)

    async def get_run(self, scope: Scope, repo: str, run_id: int) -> RunSighting:
        """One run."""
        return await jobs.get_run(self._asking(scope), repo, run_id)

    async def list_active_runs(self, scope: Scope, repo: str) -> tuple[RunSighting, ...]:
        """The repository's runs that may hold queued jobs, queued ones first."""
        return await jobs.list_active_runs(self._asking(scope), repo, self._listing)

    async def get_installation(self, app_id: str, installation_id: int) -> InstallationSighting:
        """One installation, asked with the App's JWT; InstallationGone on 404."""
        return await deliveries.get_installation(self._callers.app(app_id), app_id, installation_id)

    async def find_repo_installation(self, app_id: str, repo: str) -> InstallationSighting:
        """The installation that covers a repository now; InstallationGone on 404."""
        return await deliveries.find_repo_installation(self._callers.app(app_id), app_id, repo)

    async def find_org_installation(self, app_id: str, org: str) -> InstallationSighting:
        """The installation at an organization; InstallationGone on 404."""
        return await deliveries.find_org_installation(self._callers.app(app_id), app_id, org)

    async def dispatch_workflow(
        self, scope: Scope, repo: str, workflow: str, ref: str, inputs: Mapping[str, Any]
    ) -> StartedRun | None:
        """Start a workflow once; None: GitHub started it but did not say which run it is."""
        return await dispatches.dispatch_workflow(self._asking(scope), repo, workflow, ref, inputs)

    async def list_dispatched_runs(
        self, scope: Scope, repo: str, branch: str, between: tuple[datetime, datetime]
    ) -> tuple[StartedRun, ...]:
        """The runs that a dispatch started on a branch in a span of time, oldest first, whoever sent it."""
        ask = self._asking(scope)
        return await dispatches.list_dispatched_runs(ask, repo, branch, between, self._listing)

    async def bot_login(self, app_id: str) -> str:
        """The login under which GitHub shows what an App does; asked anew, since Apps are renamed."""
        return f"{(await self.get_app(app_id)).slug}[bot]"

    async def list_deliveries(self, app_id: str, since: datetime) -> tuple[DeliverySighting, ...]:
        """The App's deliveries newer than `since`, newest first, every page."""
        return await deliveries.list_deliveries(self._callers.app(app_id), since, self._listing)

    def pages_of_deliveries(
        self, app_id: str, since: datetime
    ) -> AsyncGenerator[tuple[DeliverySighting, ...], None]:
        """The same page by page, each with a deadline of its own."""
        return deliveries.pages_of_deliveries(self._callers.app(app_id), since)

    def pages_of_failed_deliveries(
        self, app_id: str, since: datetime
    ) -> AsyncGenerator[tuple[DeliverySighting, ...], None]:
        """Those of them that were not answered with success."""
        return deliveries.pages_of_deliveries(self._callers.app(app_id), since, deliveries.FAILED)

    async def get_delivery(self, app_id: str, delivery_id: int) -> DeliverySighting:
        """One delivery with its payload."""
        return await deliveries.get_delivery(self._callers.app(app_id), delivery_id)

    async def get_app(self, app_id: str) -> AppFacts:
        """An App as GitHub describes it to its key."""
        return await checkup.get_app(self._callers.app(app_id), app_id)

    async def get_time(self, app_id: str) -> datetime | None:
        """What GitHub's clock shows, also to an App that it refuses; None if it does not say."""
        return await checkup.get_time(self._callers.app(app_id))

    async def last_delivery(self, app_id: str) -> datetime | None:
        """When the App was last sent something that GitHub remembers."""
        return await checkup.last_delivery(self._callers.app(app_id))

    async def list_installations(self, app_id: str) -> tuple[InstallationFacts, ...]:
        """Where an App is installed, every page."""
        return await checkup.list_installations(self._callers.app(app_id), self._listing)

    def budget(self, installation_id: int) -> Budget:
        """What the last answers said; no request is made."""
        return self._callers.bucket(installation_id).budget(self._clock.now())

    def app_budget(self, app_id: str) -> Budget:
        """The same of an App, whose requests are counted apart: tokens are made of them, and deliveries read."""
        return self._callers.app_bucket(app_id).budget(self._clock.now())

    def forget_installation(self, installation_id: int) -> None:
        """Drop its token, cached answers and group id."""
        self._callers.forget(installation_id)
        self._groups.forget(installation_id)

    def _asking(self, scope: Scope) -> Ask:
        return self._callers.installation(scope.app_id, scope.installation_id)
