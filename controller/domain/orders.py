"""What is ordered of the cluster: one runner pod, in plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.domain.jobs import Entity, LabelSet


@dataclass(frozen=True, slots=True)
class PodOrder:
    """All that a runner pod is made from, in plain values."""

    name: str
    instance: str
    image: str
    pool: str
    board: str
    entity: Entity
    app_id: str
    installation_id: int
    labels: LabelSet
    board_label: str = "riseproject.dev/board"
    resource: str = "riseproject.com/runner"
    repo: str | None = None
    job_url: str | None = None
    runner_id: int | None = None
    image_pull_policy: str = "Always"
    image_pull_secrets: Sequence[str] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    held_nodes: Sequence[str] = ()
    tolerations: Sequence[Mapping[str, Any]] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    ephemeral_request: str | None = None
    ephemeral_limit: str | None = None
    active_deadline_seconds: int = 525_600
    privileged: bool = True
    host_network: bool = True
