"""The YAML file as frozen values. It is described in the README; the table there is held to these models."""

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from controller.domain.durations import parse_duration
from controller.domain.jobs import EntityType, LabelSet, normalise_labels
from controller.domain.pools import Catalogue
from controller.domain.pools import Pool as DomainPool
from controller.domain.views import HealthLimits
from controller.domain.workers import NameRule

Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
POD_NAME_LIMIT = 63
EPHEMERAL_BOARD_PREFIX = "scw-em-"


class Model(BaseModel):
    """Frozen, camelCase in the file, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class Database(Model):
    """Where and how the store works; the address itself is the secret DATABASE_URL."""

    schema_: str = Field("switchboard", alias="schema", pattern=r"^[a-z_][a-z0-9_]{0,40}$")
    max_connections: int = Field(10, ge=2, le=200)


class App(Model):
    """One GitHub App."""

    app_id: Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)] = (
        Field(pattern=r"^[A-Za-z0-9.]+$")
    )
    private_key_file: Path


class GitHubSettings(Model):
    """How GitHub is reached and how our runners appear there."""

    api_url: str = "https://api.github.com"
    runner_group: str = Field("RISE RISC-V Runners", min_length=1, max_length=100)
    runner_group_visibility: Literal["all", "selected"] = "all"
    allow_public_repositories: bool = True
    runner_name_prefix: str = Field("rise-riscv-runner", pattern=DNS_LABEL)
    apps: dict[EntityType, App] = Field(min_length=1)

    @field_validator("api_url")
    @classmethod
    def _http(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("expected an http(s) URL such as https://api.github.com")
        return value.rstrip("/")


class KubernetesSettings(Model):
    """Where runner pods go."""

    namespace: str = Field("default", pattern=DNS_LABEL)
    resource: str = "riseproject.com/runner"
    board_label: str = "riseproject.dev/board"


class Boards(Model):
    """What the controller does for boards."""

    advertise: bool = False


class EphemeralStorage(Model):
    """Request and limit of ephemeral storage."""

    request: str
    limit: str


def label_sets(value: Any) -> Any:
    """Accept one label set or a list of sets."""
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return [value]
    return value


class Pool(Model):
    """A kind of runner: which labels it serves, on which boards, with which image."""

    name: str = Field(pattern=DNS_LABEL, max_length=63)
    board: str = Field("", pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
    labels: Annotated[list[list[str]], BeforeValidator(label_sets)] = Field(min_length=1)
    image: str = Field(min_length=1)
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    ephemeral_storage: EphemeralStorage | None = None
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []
    image_pull_secrets: list[str] = []
    env: dict[str, str] = {}
    resources: dict[str, dict[str, str]] = {}
    registration_timeout: Duration | None = None
    privileged: bool = True
    host_network: bool = True

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            return data
        data = {"board": data["name"], **data}
        if str(data["board"]).startswith(EPHEMERAL_BOARD_PREFIX) and "ephemeralStorage" not in data:
            data["ephemeralStorage"] = {"request": "40Gi", "limit": "90Gi"}
        return data

    @field_validator("labels")
    @classmethod
    def _some_labels(cls, value: list[list[str]]) -> list[list[str]]:
        if any(not labels or "" in normalise_labels(labels) for labels in value):
            raise ValueError("a label set must hold at least one label, and no empty one")
        return value

    @property
    def label_sets(self) -> tuple[LabelSet, ...]:
        """The label sets this pool serves, in the form in which they are compared."""
        return tuple(normalise_labels(labels) for labels in self.labels)

    def as_domain(self, board_label: str) -> DomainPool:
        """The pool as far as decisions need it."""
        return DomainPool(
            name=self.name,
            board=self.board,
            label_sets=self.label_sets,
            image=self.image,
            selector={**self.node_selector, board_label: self.board},
            tolerations=tuple(self.tolerations),
            registration_timeout=self.registration_timeout,
        )

    @property
    def pull_policy(self) -> str:
        """Always for a tag, IfNotPresent for a digest, unless set."""
        return self.image_pull_policy or ("IfNotPresent" if "@sha256:" in self.image else "Always")


class Access(Model):
    """Who may use the boards: logins or owner/repo, `*` for everyone; deny wins."""

    allow: list[str] = ["*"]
    deny: list[str] = []
    fork_pull_requests: Literal["run", "deny"] = "run"

    @property
    def denies_forks(self) -> bool:
        """Whether pull requests from forks are kept off the boards."""
        return self.fork_pull_requests == "deny"

    def allows(self, login: str, repo: str) -> bool:
        """Whether jobs of this repository may run."""
        names = {"*", login.lower(), repo.lower()}
        listed = {name.lower() for name in self.allow}
        denied = {name.lower() for name in self.deny}
        return bool(names & listed) and not names & denied


class EntityLimits(Model):
    """What one entity gets."""

    max_workers: int | None = Field(20, ge=0)
    priority: int = Field(5, ge=1, le=10)


class EntityOverride(Model):
    """What differs from the default for one entity."""

    max_workers: int | None = Field(None, ge=0)
    priority: int | None = Field(None, ge=1, le=10)


class Entities(Model):
    """Caps and priorities by login (any case) or numeric id."""

    default: EntityLimits = EntityLimits()
    overrides: Annotated[
        dict[str, EntityOverride],
        BeforeValidator(lambda v: {str(k).lower(): x for k, x in v.items()} if isinstance(v, dict) else v),
    ] = {}

    def limits(self, login: str, entity_id: int) -> EntityLimits:
        """The limits of one entity: an override by id, else by login, else the default."""
        override = self.overrides.get(str(entity_id)) or self.overrides.get(login.lower())
        if override is None:
            return self.default
        given = {name: getattr(override, name) for name in override.model_fields_set}
        return self.default.model_copy(update={k: v for k, v in given.items() if k == "max_workers" or v})


class Limits(Model):
    """How much is done at once."""

    provision_concurrency: int = Field(10, ge=1, le=100)


class Timings(Model):
    """The seed's durations."""

    poll_interval: Duration = timedelta(seconds=15)
    registration_timeout: Duration = timedelta(seconds=120)
    idle_timeout: Duration = timedelta(seconds=600)
    pod_pending_timeout: Duration = timedelta(seconds=600)
    stuck_queued_age: Duration = timedelta(minutes=10)
    pod_delete_grace: Duration = timedelta(hours=6)
    drain_timeout: Duration = timedelta(minutes=5)
    pod_active_deadline: Duration = timedelta(seconds=525_600)


class Retention(Model):
    """How long side data is kept; rows of jobs and workers stay."""

    events: Duration = timedelta(days=30)
    snapshots: Duration = timedelta(days=90)
    failure_logs: Duration = timedelta(days=180)


class Web(Model):
    """The pages."""

    listen: Annotated[str, AfterValidator(lambda value: _listen(value))] = "0.0.0.0:8080"
    private: bool = False
    contact: str = ""

    @property
    def host(self) -> str:
        """The address to bind."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port to bind."""
        return int(self.listen.rpartition(":")[2])


def _listen(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError("expected address:port, for example 0.0.0.0:8080")
    return value


class WebhookMode(StrEnum):
    """How deliveries reach us."""

    PUSH = "push"
    PULL = "pull"


class File(Model):
    """The YAML file."""

    environment: str = Field("prod", pattern=DNS_LABEL, max_length=20)
    database: Database = Database()
    github: GitHubSettings
    webhook: WebhookMode = WebhookMode.PUSH
    kubernetes: KubernetesSettings = KubernetesSettings()
    boards: Boards = Boards()
    pools: list[Pool] = Field(min_length=1)
    access: Access = Access()
    entities: Entities = Entities()
    scheduling: Literal["fifo", "fair"] = "fifo"
    limits: Limits = Limits()
    timings: Timings = Timings()
    retention: Retention = Retention()
    web: Web = Web()

    @property
    def names(self) -> NameRule:
        """How this environment names its runners."""
        return NameRule.of(self.github.runner_name_prefix, self.environment)

    @property
    def runner_group(self) -> str:
        """The group's name in this environment."""
        name = self.github.runner_group
        return name if self.environment == "prod" else f"{name} ({self.environment})"

    @property
    def instance(self) -> str:
        """By which our pods and Secrets are told from another installation's."""
        return self.names.stem

    @property
    def apps_by_type(self) -> dict[EntityType, str]:
        """Which App serves which kind of account."""
        return {kind: app.app_id for kind, app in self.github.apps.items()}

    @property
    def catalogue(self) -> Catalogue:
        """The pools, as far as decisions need them."""
        label = self.kubernetes.board_label
        return Catalogue(tuple(pool.as_domain(label) for pool in self.pools))

    @property
    def health_limits(self) -> HealthLimits:
        """The durations that the health checks go by."""
        given = {p.name: p.registration_timeout for p in self.pools if p.registration_timeout is not None}
        return HealthLimits(
            registration=self.timings.registration_timeout,
            idle=self.timings.idle_timeout,
            pod_pending=self.timings.pod_pending_timeout,
            drain=self.timings.drain_timeout,
            pod_delete_grace=self.timings.pod_delete_grace,
            registration_by_pool=given,
        )

    def pool_named(self, name: str | None) -> Pool | None:
        """The pool of that name, unless it was removed from the file."""
        return next((pool for pool in self.pools if pool.name == name), None)
