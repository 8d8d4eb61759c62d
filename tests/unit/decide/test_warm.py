"""Spare runners: how many are made, for whom room is left, and which idle ones are kept."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from controller.decide.capacity import SlotMap, free_slots
from controller.decide.trials import Tries
from controller.decide.warm import (
    Leftover,
    Waiting,
    Want,
    WarmStep,
    backs_off,
    kept_by_windows,
    making_room,
    replacement_wait,
    top_up,
)
from controller.domain.jobs import Entity, EntityType, JobStatus, Scope
from controller.domain.pools import Catalogue, Pool
from controller.domain.schedules import Floor
from controller.domain.sightings import Node, NodeView, PodView, Unknown
from controller.domain.workers import Worker, WorkerStatus
from tests.unit.decide.schedule_builders import NOON

ACME = Entity(1, "acme", EntityType.ORGANIZATION)
POOL = Pool("rv1", "rv1", (("rv1",),), "image", {"board": "rv1"})
CATALOGUE = Catalogue((POOL,))
FLOOR = Floor(7, "mornings", Scope("111", 5, ACME), ("rv1",), 2, NOON + timedelta(hours=2))


def boards(count: int) -> SlotMap:
    nodes = {f"n{n}": Node(f"n{n}", {"board": "rv1"}, True, True, False, 1) for n in range(count)}
    return free_slots(NodeView(nodes, 1), PodView({}, 1), [], frozenset())


def made(
    floor: Floor = FLOOR,
    *,
    free: int = 4,
    spare: int = 0,
    cap: int | None = None,
    held: int = 0,
    runners: int = 9,
    waiting: Waiting = Waiting(),  # noqa: B008 - frozen
    barred: bool = False,
    known: bool = True,
) -> tuple[WarmStep, ...]:
    """The steps for one window."""
    slots = boards(free) if known else Unknown("the watch is broken")
    left = Leftover(slots, Counter({1: held}), {5: runners}, Tries({}, (), CATALOGUE, NOON))
    return top_up(
        [floor], {floor.key: spare}, left, waiting, CATALOGUE, lambda entity: cap, lambda f, p: barred, NOON
    )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (made(), 2),
        (made(spare=1), 1),
        (made(spare=2), 0),
        (made(free=1), 1),
        (made(cap=3, held=2), 1),
        (made(cap=2, held=2), 0),
        (made(runners=1), 1),
        (made(barred=True), 0),
        (made(known=False), 0),
        (made(replace(FLOOR, until=NOON)), 0),
        (made(replace(FLOOR, labels=("gone",))), 0),
        (made(waiting=Waiting(pools=(POOL, POOL, POOL))), 1),  # room is left for three jobs that back off
        (made(free=3, waiting=Waiting(pools=(POOL, POOL, POOL))), 0),
        (made(waiting=Waiting(wants=(Want(board="rv1"),))), 0),
    ],
)
def test_spare_runners_obey_everything_that_workers_obey(steps: tuple[WarmStep, ...], expected: int) -> None:
    assert len(steps) == expected
    assert len({step.node for step in steps}) == expected


@pytest.mark.parametrize(
    ("failures", "removed", "minutes"),
    [(1, True, 1), (2, True, 2), (3, True, 4), (9, True, 4), (9, False, 30)],
)
def test_what_ended_without_a_job_is_replaced_later_and_later(
    failures: int, removed: bool, minutes: int
) -> None:
    floor = replace(FLOOR, failures=failures, removed=removed, failed_at=NOON)
    wait = timedelta(minutes=minutes)
    assert replacement_wait(floor) == wait
    assert not backs_off(floor, NOON + wait)
    assert backs_off(floor, NOON + wait - timedelta(seconds=1))


def a_worker(name: str, **changes: object) -> Worker:
    worker = Worker(name, ACME, "111", 5, ("rv1",), "rv1", "image", WorkerStatus.RUNNING, NOON)
    return replace(worker, **changes)  # type: ignore[arg-type]


def kept(
    workers: Sequence[Worker],
    floors: Sequence[Floor] = (FLOOR,),
    *,
    spare: int | None = None,
    wants: Sequence[Want] = (),
    now: datetime = NOON,
) -> frozenset[str]:
    """The idle workers that windows keep; all of them are spare unless it is said."""
    to_spare = {FLOOR.key: len(workers) if spare is None else spare}
    ending = making_room(workers, to_spare, wants, CATALOGUE)
    return kept_by_windows(floors, workers, to_spare, wants, ending, CATALOGUE, now)


def ended(workers: Sequence[Worker], *wants: Want, spare: int | None = None) -> list[str]:
    """The idle spare runners that make room."""
    to_spare = {FLOOR.key: len(workers) if spare is None else spare}
    return sorted(making_room(workers, to_spare, wants, CATALOGUE))


def a_spare(name: str, **changes: object) -> Worker:
    """An idle spare runner."""
    return a_worker(
        name, **({"warm_for": 7, "online_at": NOON, "idle_since": NOON, "pod_at": NOON} | changes)
    )


def test_a_window_keeps_as_many_idle_workers_as_it_asks_for_and_none_where_jobs_wait() -> None:
    workers = [a_worker(f"w{n}") for n in range(4)]
    assert len(kept(workers)) == 2
    assert kept(workers, wants=[Want(board="rv1")]) == frozenset()
    busy = [a_worker("busy", job_id=3), a_worker("ending", ending_reason="runner_idle")]
    assert kept(busy) == frozenset()


@pytest.mark.parametrize(("late", "count"), [(0, 2), (59, 2), (60, 0)])
def test_idle_workers_outlive_their_window_until_the_next_one_can_take_them_over(
    late: int, count: int
) -> None:
    now = FLOOR.until + timedelta(seconds=late)
    workers = [a_worker(f"w{n}") for n in range(6)]
    assert len(kept(workers, now=now)) == count
    following = replace(FLOOR, runners=3, until=FLOOR.until + timedelta(hours=1))
    assert len(kept(workers, [FLOOR, following], now=now)) == 3


BOARD = Want(board="rv1")
PLACE = Want(entity=1)
BOTH = Want(board="rv1", entity=1)
THREE = [a_spare("a"), a_spare("b"), a_spare("c")]


@pytest.mark.parametrize(
    ("wants", "spare", "expected"),
    [
        ((), 3, []),
        ((BOARD,), 3, ["a"]),
        ((PLACE,), 3, ["a"]),
        ((BOTH,), 3, ["a"]),
        ((BOARD, PLACE), 3, ["a", "b"]),
        ((BOARD,) * 9, 3, ["a", "b", "c"]),
        ((BOARD,) * 9, 1, ["a"]),  # the other two are about to get the jobs of their own labels
        ((Want(board="rv2"), Want(entity=2), Want(board="rv2", entity=1)), 3, []),
    ],
)
def test_for_each_job_that_lacks_what_a_spare_runner_takes_up_one_ends(
    wants: tuple[Want, ...], spare: int, expected: list[str]
) -> None:
    assert ended(THREE, *wants, spare=spare) == expected
    window = replace(FLOOR, runners=3)
    stay = {"a", "b", "c"}.difference(expected) if not expected or spare < len(THREE) else set()
    assert kept(THREE, [window], wants=wants, spare=spare) == stay


@pytest.mark.parametrize(
    "going",
    [
        a_spare("z", ending_reason="runner_idle"),
        a_spare("z", status=WorkerStatus.FAILED),
        a_worker("z", job_id=1, job_status=JobStatus.COMPLETED, job_ended_at=NOON, pod_at=NOON),
    ],
)
def test_whoever_is_about_to_go_makes_room_for_one_job(going: Worker) -> None:
    assert ended([*THREE, going], BOARD) == []
    assert ended([*THREE, going], BOARD, BOARD) == ["a"]


@pytest.mark.parametrize("changes", [{"warm_for": None}, {"idle_since": None}, {"job_id": 3}])
def test_only_idle_spare_runners_make_room(changes: dict[str, object]) -> None:
    assert ended([a_spare("a", **changes)], BOARD) == []


def test_a_window_keeps_those_who_cover_jobs_of_their_own_labels_though_others_wait() -> None:
    assert kept(THREE, spare=1, wants=[PLACE]) == {"b", "c"}
