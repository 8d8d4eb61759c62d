"""What one iteration sees: rows and the world outside, side by side, unchanging."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from controller.domain.jobs import Scope
from controller.domain.sightings import Node, NodeView, Pod, PodView, Runner, Unknown
from controller.domain.workers import Adopted, Worker

RunnerList = tuple[Runner, ...] | Unknown


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """The settings that the health checks go by."""

    registration: timedelta
    idle: timedelta
    pod_pending: timedelta
    drain: timedelta
    pod_delete_grace: timedelta
    registration_by_pool: Mapping[str, timedelta] = field(default_factory=dict)

    def registration_of(self, pool: str) -> timedelta:
        """How long a pool's runners may take to come online."""
        return self.registration_by_pool.get(pool, self.registration)


@dataclass(frozen=True, slots=True)
class Spares:
    """What the last match says of idle workers."""

    kept: frozenset[str] | None = None  # a warm window keeps these; None: not known yet
    ending: frozenset[str] = frozenset()  # these are to get no job, or stand in the way of one


@dataclass(frozen=True, slots=True)
class View:
    """All that the phases of sync_workers decide upon."""

    now: datetime
    workers: Mapping[str, Worker]  # live rows, and ended ones whose pod is not known to be gone
    pods: PodView | Unknown
    nodes: NodeView | Unknown
    limits: HealthLimits
    runners: Mapping[Scope, RunnerList] = field(default_factory=dict)  # the lists read in this iteration
    ours: Mapping[str, Adopted | None] = field(default_factory=dict)  # pods that carry our labels
    absent: frozenset[str] = frozenset()  # pods for which the API server itself just answered 404
    in_flight: frozenset[str] = frozenset()  # workers whose provisioning is under way in this process
    kept: frozenset[str] | None = frozenset()  # idle workers that a warm window keeps; None: not known yet
    ending: frozenset[str] = frozenset()  # idle workers that are to get no job, or stand in the way

    @property
    def live(self) -> tuple[Worker, ...]:
        """The workers that have not ended."""
        return tuple(worker for worker in self.workers.values() if worker.status.live)

    def pod(self, name: str) -> Pod | None:
        """The pod of a worker, if the view shows it."""
        return None if isinstance(self.pods, Unknown) else self.pods.pods.get(name)

    def node(self, name: str | None) -> Node | None:
        """The node of that name, if the view shows it."""
        return None if isinstance(self.nodes, Unknown) or name is None else self.nodes.nodes.get(name)

    def without(self, names: frozenset[str]) -> "View":
        """The same view after these workers have ended."""
        return replace(self, workers={name: w for name, w in self.workers.items() if name not in names})
