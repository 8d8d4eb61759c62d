"""What exists on the simulated GitHub: plain records that `world` indexes and the other modules change."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

Json = dict[str, object]
History = list[tuple[datetime, str]]


@dataclass(slots=True)
class App:
    """A GitHub App: who signs JWTs, and what its installations may do."""

    id: int
    slug: str
    client_id: str
    public_key_pem: bytes
    permissions: Mapping[str, str]
    created_at: datetime
    hook_id: int


@dataclass(slots=True)
class Account:
    """An organization or a personal account."""

    id: int
    login: str
    type: str  # Organization | User | Bot
    created_at: datetime
    installations: dict[int, "Installation"] = field(default_factory=dict)  # by App id
    repositories: dict[int, "Repository"] = field(default_factory=dict)
    groups: dict[int, "RunnerGroup"] = field(default_factory=dict)  # organizations only
    runners: dict[int, "Runner"] = field(default_factory=dict)  # organization level
    min_runner_version: str | None = None  # older (or unnamed) versions are refused with 426

    @property
    def installation(self) -> "Installation":
        """The installation that was made with the account."""
        return next(iter(self.installations.values()))


@dataclass(slots=True)
class Installation:
    """An App's presence at one account."""

    id: int
    app: App
    account: Account
    created_at: datetime
    permissions: Mapping[str, str]
    suspended_at: datetime | None = None
    deleted_at: datetime | None = None


@dataclass(slots=True)
class Repository:
    """A repository; `branches` are the refs that a dispatch may name."""

    id: int
    owner: Account
    name: str
    private: bool
    created_at: datetime
    branches: set[str] = field(default_factory=lambda: {"main"})
    workflows: dict[str, "Workflow"] = field(default_factory=dict)
    runners: dict[int, "Runner"] = field(default_factory=dict)  # repository level
    runs: dict[int, "Run"] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """As GitHub writes it."""
        return f"{self.owner.login}/{self.name}"


@dataclass(slots=True)
class Workflow:
    """A workflow file that can be dispatched."""

    id: int
    file: str
    jobs: "tuple[JobSpec, ...]"


@dataclass(slots=True)
class RunnerGroup:
    """A runner group of an organization."""

    id: int
    name: str
    visibility: str = "all"  # all | private | selected
    allows_public_repositories: bool = False
    default: bool = False
    restricted_to_workflows: bool = False
    selected_workflows: tuple[str, ...] = ()
    selected_repository_ids: set[int] = field(default_factory=set)

    def serves(self, repository: Repository) -> bool:
        """Whether jobs of the repository may use runners of this group."""
        if not repository.private and not self.allows_public_repositories:
            return False
        if self.visibility == "selected":
            return repository.id in self.selected_repository_ids
        return self.visibility == "all" or repository.private


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a workflow asks for. Conclusion `skipped` never queues; `waiting` needs an approval first."""

    labels: Sequence[str]
    seconds: float = 60.0
    name: str = "build"
    conclusion: str = "success"
    waiting: bool = False


@dataclass(slots=True, eq=False)
class Job:
    """A job of a run attempt; `runner` is set while it is assigned or runs."""

    id: int
    run: "Run"
    spec: JobSpec
    attempt: int
    position: int  # within the run; a re-run keeps it
    labels: frozenset[str]  # lower-case, for matching
    created_at: datetime
    status: str = "requested"
    conclusion: str | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    runner: "Runner | None" = None  # whom it is given to; still there after it ended
    cancel_requested: bool = False
    environment: bool = False  # held by a deployment protection rule, once
    hidden_until: datetime | None = None  # its GET answers 404 till then
    hidden_in_list: bool = False
    history: History = field(default_factory=list)

    @property
    def repository(self) -> Repository:
        """Where it belongs."""
        return self.run.repository


@dataclass(slots=True, eq=False)
class Run:
    """A workflow run; status and conclusion follow from its jobs unless `forced`."""

    id: int
    repository: Repository
    number: int
    event: str
    branch: str
    head_sha: str
    workflow_id: int
    workflow_file: str
    created_at: datetime
    updated_at: datetime
    actor: Account  # who started it
    inputs: Json = field(default_factory=dict)
    attempt: int = 1
    jobs: list[Job] = field(default_factory=list)
    forced: tuple[str, str] | None = None  # ended whatever its jobs say
    fork: bool = False  # its head is a fork of the repository

    def latest_jobs(self) -> list[Job]:
        """The newest attempt of each job."""
        return list({job.position: job for job in self.jobs}.values())


@dataclass(slots=True, eq=False)
class Runner:
    """A JIT runner: registered, perhaps connected once, then removed."""

    id: int
    name: str
    owner: Account
    repository: Repository | None  # repository level, else organization level
    group: RunnerGroup
    labels: tuple[str, ...]
    matching: frozenset[str]  # lower-case
    token: str
    registered_at: datetime
    version: str | None = None
    os: str = "unknown"
    session_at: datetime | None = None  # the config is used up from here on
    last_seen: datetime | None = None
    idle_since: datetime | None = None
    polls: int = 0  # open long polls: those keep it online
    offered: Job | None = None  # assigned, not picked up yet
    job: Job | None = None  # picked up
    busy_changes: list[tuple[datetime, bool]] = field(default_factory=list)
    removed_at: datetime | None = None
    removed_why: str | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    history: History = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Delivery:
    """One attempt to deliver a webhook, as the deliveries API lists it."""

    id: int
    guid: str
    app: App
    event: str
    action: str | None
    installation_id: int | None
    repository_id: int | None
    payload: Json
    created_at: datetime
    redelivery: bool = False
    delivered_at: datetime | None = None  # listed from here on
    duration: float = 0.0
    status: str = "pending"
    status_code: int = 0
    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str | None = None

    @property
    def ok(self) -> bool:
        """How the list is filtered: by the receiver's status code."""
        return 200 <= self.status_code < 400
