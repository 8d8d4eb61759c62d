"""Heartbeats: who was seen, and what an unknown view does with those who were not."""

from datetime import UTC, datetime, timedelta

import pytest

from controller.decide.capacity import Claim, free_slots
from controller.decide.heartbeats import find_beats, snapshot_pools
from controller.decide.orphans import find_orphans
from controller.domain.changes import AskForPod, Fail, PodGone
from controller.domain.constants import HEARTBEAT_EVERY, SILENT_AT_ONCE, SILENT_BEATS
from controller.domain.heartbeats import Beat, PoolSnapshot
from controller.domain.jobs import Entity, EntityType, JobStatus
from controller.domain.pools import Catalogue, Pool
from controller.domain.reasons import Reason
from controller.domain.sightings import NodeView, Pod, PodPhase, PodView, Unknown
from controller.domain.views import HealthLimits, View
from controller.domain.workers import Worker, WorkerStatus
from tests.unit.decide.builders import BOARD, a_node, a_pod

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)
LIMITS = HealthLimits(AN_HOUR, AN_HOUR, AN_HOUR, AN_HOUR, AN_HOUR)


def a_worker(name: str = "runner-1", **more: object) -> Worker:
    values: dict[str, object] = {
        "name": name,
        "entity": Entity(1, "acme", EntityType.ORGANIZATION),
        "app_id": "111",
        "installation_id": 7,
        "labels": ("rv1",),
        "pool": "rv1",
        "image": "runner:1",
        "status": WorkerStatus.RUNNING,
        "created_at": NOW - AN_HOUR,
    }
    return Worker(**{**values, **more})  # type: ignore[arg-type]


def the_pods(*names: str) -> PodView:
    return PodView({name: Pod(name, name, PodPhase.RUNNING, NOW, 1) for name in names}, 1)


@pytest.mark.parametrize(
    ("worker", "online", "busy"),
    [
        (a_worker(), None, None),
        (a_worker(read_at=NOW, not_busy_since=NOW), False, False),
        (a_worker(read_at=NOW, not_busy_since=NOW, idle_since=NOW), True, False),
        (a_worker(job_id=5, job_status=JobStatus.RUNNING), True, True),
    ],
)
def test_a_beat_tells_what_is_known_of_the_runner(
    worker: Worker, online: bool | None, busy: bool | None
) -> None:
    assert list(find_beats([worker], the_pods("runner-1"))) == [Beat("runner-1", "Running", online, busy)]


def test_who_is_not_seen_or_has_ended_does_not_beat() -> None:
    ended = a_worker("runner-2", status=WorkerStatus.FAILED)
    assert list(find_beats([a_worker(), ended], the_pods("runner-2"))) == []


def test_a_snapshot_counts_slots_and_not_boards() -> None:
    nodes = [a_node("a", slots=4), a_node("b", slots=2), a_node("c", slots=0)]
    pods = {name: a_pod(name, node="a") for name in ("one", "two")}
    view = NodeView({node.name: node for node in nodes}, 1)
    slots = free_slots(view, PodView(pods, 1), [Claim({BOARD: "x"})], frozenset({"b"}))
    pool = Pool("x", "x", (("x",),), "image", {BOARD: "x"})
    assert list(snapshot_pools(slots, Catalogue((pool,)))) == [PoolSnapshot("x", 6, 1, 3, 2, 0)]


def unseen(*workers: Worker, absent: frozenset[str] = frozenset()) -> View:
    rows = {worker.name: worker for worker in workers}
    return View(NOW, rows, Unknown("no watch"), Unknown("no watch"), LIMITS, absent=absent)


@pytest.mark.parametrize(("extra", "asked"), [(0, ()), (1, (AskForPod("runner-1"),))])
def test_a_worker_may_be_silent_for_two_beats(extra: int, asked: tuple[AskForPod, ...]) -> None:
    silent = HEARTBEAT_EVERY * SILENT_BEATS + timedelta(seconds=extra)
    decided = find_orphans(unseen(a_worker(heartbeat_at=NOW - silent)))
    assert (decided.changes, decided.effects) == ((), asked)


def test_without_a_view_only_a_404_ends_a_worker() -> None:
    decided = find_orphans(unseen(a_worker(), a_worker("runner-2"), absent=frozenset({"runner-1"})))
    assert decided.changes == (Fail("runner-1", Reason.POD_MISSING), PodGone("runner-1", NOW))
    assert decided.effects == (AskForPod("runner-2"),)


def test_a_broken_watch_does_not_become_a_flood_of_requests() -> None:
    workers = [a_worker(f"runner-{number}") for number in range(SILENT_AT_ONCE + 5)]
    assert len(find_orphans(unseen(*workers)).effects) == SILENT_AT_ONCE
