"""A waiting job's place in the queue, and when its turn comes about."""

from datetime import timedelta
from typing import Any

import pytest

from controller.decide.turns import estimate, position, queues
from controller.domain.jobs import Entity, EntityType, Job, JobStatus, Mark
from controller.domain.pages import Ahead, Pace
from tests.clocks import EPOCH as NOW

OURS = Entity(1, "ours", EntityType.ORGANIZATION)
FIRST = Entity(2, "first", EntityType.ORGANIZATION)
LAST = Entity(3, "last", EntityType.ORGANIZATION)
PRIORITIES = {"ours": 5, "first": 9, "last": 2}


def a_job(**fields: Any) -> Job:
    values: dict[str, Any] = {"status": JobStatus.PENDING, **fields}
    return Job(
        1,
        OURS,
        "ours/repo",
        ("riscv",),
        created_at=NOW,
        app_id="1",
        installation_id=1,
        run_id=1,
        seen_at=NOW,
        **values,
    )


def priority(entity: Entity) -> int:
    return PRIORITIES[entity.name]


def a_pace(**fields: Any) -> Pace:
    values = {
        "slots": 4,
        "finished": 20,
        "board_time": timedelta(minutes=8),
        "start_time": timedelta(seconds=30),
    }
    return Pace(**{**values, **fields})


def test_a_job_alone_is_first() -> None:
    assert position(a_job(), [Ahead(OURS, waiting=1, earlier=0)], priority) == 1


def test_equals_are_served_by_age_those_above_first_and_those_below_later() -> None:
    queue = [Ahead(OURS, 9, 3), Ahead(FIRST, 4, 0), Ahead(LAST, 50, 50)]
    assert position(a_job(), queue, priority) == 3 + 4 + 1


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, True),
        ({"skip_reason": "no_free_slots"}, True),
        ({"skip_reason": "runner_on_its_way"}, False),
        ({"skip_reason": "held"}, False),
        ({"mark": Mark.CANCELLED}, False),
        ({"status": JobStatus.RUNNING}, False),
    ],
)
def test_only_those_who_wait_for_a_board_have_a_place(fields: dict[str, Any], asked: bool) -> None:
    assert queues(a_job(**fields)) is asked


def test_the_estimate_is_the_boards_time_by_place_and_the_start_of_a_runner() -> None:
    assert estimate(6, a_pace()) == timedelta(minutes=12, seconds=30)
    assert estimate(6, a_pace(start_time=None)) == timedelta(minutes=12)


@pytest.mark.parametrize("unknown", [{"finished": 19}, {"slots": 0}, {"board_time": None}])
def test_too_little_is_known_for_an_estimate(unknown: dict[str, Any]) -> None:
    assert estimate(1, a_pace(**unknown)) is None
