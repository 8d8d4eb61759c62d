"""What was seen outside: pods, nodes, runners, jobs on GitHub. Unknown is not absent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from controller.domain.jobs import Entity, LabelSet

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A view that could not be had: failed, partial or stale. Nothing may be concluded from it."""

    why: str


class PodPhase(StrEnum):
    """Kubernetes' own phases."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def ended(self) -> bool:
        """Whether the containers have ended for good."""
        return self in (PodPhase.SUCCEEDED, PodPhase.FAILED)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the runner namespace, ours or not."""

    name: str
    uid: str
    phase: PodPhase
    created_at: datetime
    resource_version: int
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    avoids: frozenset[str] = frozenset()  # nodes that its affinity keeps it off
    slots: int = 0  # how many of the extended resource it asks for
    accepted_at: datetime | None = None  # status.startTime: a kubelet has taken it
    running_at: datetime | None = None
    finished_at: datetime | None = None
    deleting_since: datetime | None = None
    deadline_seconds: int | None = None
    waiting: str | None = None  # the container's waiting reason, e.g. ErrImagePull
    waiting_message: str | None = None
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    unschedulable: str | None = None  # message of the PodScheduled=False condition


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster."""

    name: str
    labels: Mapping[str, str]
    ready: bool
    schedulable: bool
    unreachable: bool
    slots: int  # allocatable of the extended resource
    taints: tuple[tuple[str, str, str], ...] = ()  # key, value, effect
    capacity: int = 0  # of the extended resource; the kubelet makes it allocatable
    advertised_by: str | None = None  # the installation that wrote that capacity, if one did


@dataclass(frozen=True, slots=True)
class PodView:
    """All pods of the namespace as of one resource version."""

    pods: Mapping[str, Pod]
    resource_version: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """All nodes as of one resource version."""

    nodes: Mapping[str, Node]
    resource_version: int


@dataclass(frozen=True, slots=True)
class Runner:
    """A self-hosted runner as GitHub lists it. Listed as offline from the moment its config is made."""

    id: int
    name: str
    online: bool
    busy: bool
    group_id: int | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class JobSighting:
    """A job as GitHub's REST API shows it."""

    job_id: int
    run_id: int
    status: str
    conclusion: str | None
    runner_name: str | None
    labels: LabelSet
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    name: str = ""
    html_url: str = ""
    run_attempt: int = 1


@dataclass(frozen=True, slots=True)
class RunSighting:
    """A workflow run as GitHub's REST API shows it."""

    run_id: int
    status: str | None
    conclusion: str | None
    foreign: bool = False  # its code comes from another repository: a pull request from a fork


@dataclass(frozen=True, slots=True)
class InstallationSighting:
    """An installation of one of our Apps."""

    installation_id: int
    app_id: str
    suspended: bool
    permissions: Mapping[str, str] = field(default_factory=dict)
    account: Entity | None = None


@dataclass(frozen=True, slots=True)
class DeliverySighting:
    """A line of the App's delivery list; `payload` only after it was fetched by id."""

    id: int
    guid: str
    event: str
    action: str | None
    delivered_at: datetime
    ok: bool  # our receiver answered 2xx
    installation_id: int | None = None
    payload: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PodReport:
    """What is worth keeping of a pod that failed."""

    reason: str | None = None
    message: str | None = None
    containers: tuple[Mapping[str, Any], ...] = ()
    log_tail: str = ""
    events: tuple[Mapping[str, Any], ...] = ()
    missing: tuple[
        str, ...
    ] = ()  # the parts that were not answered for; what does not exist is empty instead
