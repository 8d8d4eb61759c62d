"""Time, chance, secrets, GitHub and the cluster, as the core sees them."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from controller.domain.budgets import Budget
from controller.domain.jobs import LabelSet, Scope
from controller.domain.orders import PodOrder
from controller.domain.schedules import StartedRun
from controller.domain.sightings import (
    DeliverySighting,
    InstallationSighting,
    JobSighting,
    NodeView,
    Pod,
    PodReport,
    PodView,
    Runner,
    RunSighting,
    Unknown,
)
from controller.domain.workers import Adopted


class Clock(Protocol):
    """The only source of time; demo and tests hand in another one."""

    def now(self) -> datetime:
        """Aware, UTC."""
        ...

    async def sleep(self, delay: timedelta) -> None:
        """Wait in this clock's time."""
        ...


class Random(Protocol):
    """The only source of chance (random.Random fits)."""

    def choice(self, seq: Sequence[str]) -> str:
        """One element."""
        ...

    def random(self) -> float:
        """In [0, 1)."""
        ...


class Secret:
    """A value that must not be printed; `reveal()` is called only where it is sent."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class JitRunner:
    """A registered runner and the credential with which its pod goes online."""

    runner: Runner
    config: Secret


@dataclass(frozen=True, slots=True)
class CreatedPod:
    """What the API server said of a created (or already existing) pod."""

    uid: str
    resource_version: int


class GitHub(Protocol):
    """The GitHub gateway. Every method has a deadline and raises only GitHubError and its children."""

    async def ensure_runner_group(self, scope: Scope) -> int:
        """The id of our group in an organization, created if missing; 1 where groups cannot be had."""
        ...

    async def create_jit_runner(self, scope: Scope, name: str, labels: LabelSet, group_id: int) -> JitRunner:
        """Register a runner. Never retried under the same name: the effect may have happened."""
        ...

    async def list_runners(self, scope: Scope) -> tuple[Runner, ...]:
        """All runners of the scope, every page; for organizations those of our group."""
        ...

    async def find_runner(self, scope: Scope, name: str) -> Runner | None:
        """The runner of exactly that name, or None if GitHub lists none."""
        ...

    async def delete_runner(self, scope: Scope, runner_id: int) -> None:
        """Delete a runner; gone already is fine. RunnerBusy: it runs a job and was left alone."""
        ...

    async def get_job(self, scope: Scope, repo: str, job_id: int) -> JobSighting:
        """One job; GitHubNotFound on 404."""
        ...

    async def list_run_jobs(self, scope: Scope, repo: str, run_id: int) -> tuple[JobSighting, ...]:
        """All jobs of a run, latest attempt, every page."""
        ...

    async def get_run(self, scope: Scope, repo: str, run_id: int) -> RunSighting:
        """One run."""
        ...

    async def list_active_runs(self, scope: Scope, repo: str) -> tuple[RunSighting, ...]:
        """The repository's runs that may hold queued jobs, queued ones first."""
        ...

    async def get_installation(self, app_id: str, installation_id: int) -> InstallationSighting:
        """One installation, asked with the App's JWT; InstallationGone on 404."""
        ...

    async def find_repo_installation(self, app_id: str, repo: str) -> InstallationSighting:
        """The installation that covers a repository now; InstallationGone on 404."""
        ...

    async def find_org_installation(self, app_id: str, org: str) -> InstallationSighting:
        """The installation at an organization; InstallationGone on 404."""
        ...

    async def dispatch_workflow(
        self, scope: Scope, repo: str, workflow: str, ref: str, inputs: Mapping[str, Any]
    ) -> StartedRun | None:
        """Start a workflow; None: GitHub started it but did not say which run it is. Never sent twice."""
        ...

    async def list_dispatched_runs(
        self, scope: Scope, repo: str, branch: str, between: tuple[datetime, datetime]
    ) -> tuple[StartedRun, ...]:
        """The runs that a dispatch started on a branch in a span of time, oldest first, whoever sent it."""
        ...

    async def bot_login(self, app_id: str) -> str:
        """The login under which GitHub shows what an App does."""
        ...

    def pages_of_deliveries(
        self, app_id: str, since: datetime
    ) -> AsyncGenerator[tuple[DeliverySighting, ...], None]:
        """The App's deliveries newer than `since`, newest first, page by page."""
        ...

    def pages_of_failed_deliveries(
        self, app_id: str, since: datetime
    ) -> AsyncGenerator[tuple[DeliverySighting, ...], None]:
        """Those of them that were not answered with success."""
        ...

    async def get_delivery(self, app_id: str, delivery_id: int) -> DeliverySighting:
        """One delivery with its payload."""
        ...

    def budget(self, installation_id: int) -> Budget:
        """What the last answers said; no request is made."""
        ...

    def app_budget(self, app_id: str) -> Budget:
        """The same of an App's own requests: tokens are made of them, and deliveries read."""
        ...

    def forget_installation(self, installation_id: int) -> None:
        """Drop its token, cached answers and group id."""
        ...


class Cluster(Protocol):
    """The Kubernetes gateway. Methods have deadlines and raise only ClusterError and its children."""

    async def synced(self) -> None:
        """Wait until both views have been listed once."""
        ...

    def pods(self) -> PodView | Unknown:
        """All pods of the namespace from the watch cache."""
        ...

    def nodes(self) -> NodeView | Unknown:
        """All nodes from the watch cache."""
        ...

    def ours(self, pod: Pod) -> bool:
        """Whether this installation made the pod."""
        ...

    def identify(self, pod: Pod) -> Adopted | None:
        """The worker that a pod of ours says it is; None when it does not tell enough."""
        ...

    async def provision_runner(self, order: PodOrder, config: Secret) -> CreatedPod:
        """Make the Secret with the JIT config, the pod, and the pod the owner of the Secret."""
        ...

    async def own_secret(self, name: str, pod_uid: str) -> None:
        """Make the pod of the same name the owner of the Secret, so that they go together."""
        ...

    async def end_pod(self, name: str, reason: str) -> None:
        """Set activeDeadlineSeconds to 1 and note the reason; gone already is fine."""
        ...

    async def delete_pod(self, name: str) -> None:
        """Delete with the normal grace; gone already is fine."""
        ...

    async def force_delete_pod(self, name: str) -> None:
        """Delete with zero grace, for pods whose kubelet is gone."""
        ...

    async def get_pod(self, name: str) -> Pod | None:
        """Ask the API server directly; None means 404."""
        ...

    async def list_secrets(self) -> Mapping[str, datetime]:
        """Our Secrets by name, with their creation times."""
        ...

    async def delete_secret(self, name: str) -> None:
        """Delete; gone already is fine."""
        ...

    async def offer_slot(self, node: str) -> None:
        """Write one slot into the node's capacity, and that it was us; a node that is gone is fine."""
        ...

    async def withdraw_slot(self, node: str) -> None:
        """Take the slot that was offered off the node again; a node that is gone is fine."""
        ...

    async def report(self, name: str) -> PodReport:
        """Collect exits, the last log lines (redacted by the caller) and events of a pod."""
        ...
