"""Builders of what decisions are made upon: only the interesting field is given."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from controller.domain.jobs import Entity, EntityType, Job, JobStatus, Scope
from controller.domain.sightings import Node, NodeView, Pod, PodPhase, PodView, Runner, Unknown
from controller.domain.views import HealthLimits, View
from controller.domain.workers import Worker, WorkerStatus

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BOARD = "riseproject.dev/board"
ACME = Entity(5, "acme", EntityType.ORGANIZATION)
JANE = Entity(6, "jane", EntityType.USER)
SCOPE = Scope("111", 31, ACME)
NAME = "rise-riscv-runner-a1b2c3d4e"
LIMITS = HealthLimits(
    registration=timedelta(seconds=120),
    idle=timedelta(seconds=600),
    pod_pending=timedelta(seconds=600),
    drain=timedelta(minutes=5),
    pod_delete_grace=timedelta(hours=6),
)
_ids = count(1)


def ago(seconds: float) -> datetime:
    """So long before NOW."""
    return NOW - timedelta(seconds=seconds)


def a_job(**fields: Any) -> Job:
    """A pending job of acme, two minutes old."""
    values: dict[str, Any] = {
        "job_id": next(_ids),
        "entity": ACME,
        "repo": "acme/widgets",
        "labels": ("x",),
        "status": JobStatus.PENDING,
        "created_at": ago(120),
        "app_id": "111",
        "installation_id": 31,
        "run_id": 77,
        "seen_at": ago(119),
    }
    return Job(**(values | fields))


def a_worker(name: str = NAME, **fields: Any) -> Worker:
    """A running worker of acme without a job; its pod was made five minutes ago."""
    values: dict[str, Any] = {
        "entity": ACME,
        "app_id": "111",
        "installation_id": 31,
        "labels": ("x",),
        "pool": "x",
        "image": "image",
        "status": WorkerStatus.RUNNING,
        "created_at": ago(301),
        "create_rv": 10,
        "pod_at": ago(300),
    }
    return Worker(name, **(values | fields))


def a_pod(name: str = NAME, **fields: Any) -> Pod:
    """A running pod of ours on board-1, five minutes old."""
    values: dict[str, Any] = {
        "uid": name,
        "phase": PodPhase.RUNNING,
        "created_at": ago(300),
        "resource_version": 10,
        "node": "board-1",
        "slots": 1,
        "accepted_at": ago(299),
        "running_at": ago(290),
    }
    return Pod(name, **(values | fields))


def a_node(name: str = "board-1", **fields: Any) -> Node:
    """A healthy board of type x with one slot."""
    values: dict[str, Any] = {
        "labels": {BOARD: "x"},
        "ready": True,
        "schedulable": True,
        "unreachable": False,
        "slots": 1,
    }
    return Node(name, **(values | fields))


def a_runner(name: str = NAME, **fields: Any) -> Runner:
    """An online runner that has nothing to do."""
    values: dict[str, Any] = {"id": 900, "online": True, "busy": False}
    return Runner(name=name, **(values | fields))


def a_view(
    workers: Iterable[Worker] = (),
    pods: Iterable[Pod] | Unknown = (),
    nodes: Iterable[Node] | Unknown = (),
    runners: Mapping[Scope, Any] | None = None,
    **fields: Any,
) -> View:
    """What one iteration sees; every pod is one of ours unless `ours` says otherwise."""
    shown = pods if isinstance(pods, Unknown) else PodView({pod.name: pod for pod in pods}, 100)
    boards = nodes if isinstance(nodes, Unknown) else NodeView({node.name: node for node in nodes}, 100)
    ours = {} if isinstance(shown, Unknown) else dict.fromkeys(shown.pods)
    values: dict[str, Any] = {"now": NOW, "limits": LIMITS, "runners": runners or {}, "ours": ours}
    return View(
        workers={worker.name: worker for worker in workers}, pods=shown, nodes=boards, **(values | fields)
    )
