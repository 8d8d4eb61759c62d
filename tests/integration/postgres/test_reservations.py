"""Reserved names are unique, and no state ever goes back."""

import re

import pytest

from controller.domain.jobs import Entity, EntityType
from controller.domain.reservations import Reservation, Reserved
from controller.errors import LeadershipLost
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.leader import Leadership
from controller.gateways.postgres.workers import WorkerStore
from tests.clocks import EPOCH
from tests.integration.postgres.queries import rows
from tests.integration.postgres.test_plans import statements
from tests.payloads import CATALOGUE, JOB_ID, LABELS, a_delivery

ENTITY = Entity(5, "example-org", EntityType.ORGANIZATION)


def an_order(name: str, max_workers: int | None = None) -> Reservation:
    return Reservation(name, ENTITY, "111", 31, LABELS, "scw-em-rv1", "image", JOB_ID, None, max_workers)


async def leading(database: Database) -> int:
    await Intake(database, CATALOGUE).take(a_delivery(), known_app=True, allowed=True, now=EPOCH)
    leadership = Leadership(database, "test")
    assert await leadership.acquire(EPOCH)
    assert leadership.epoch is not None
    return leadership.epoch


async def test_a_name_that_is_taken_is_told_apart_from_one_that_was_written(database: Database) -> None:
    epoch, workers = await leading(database), WorkerStore(database)
    first = await workers.reserve([an_order("one")], epoch, EPOCH)
    assert first == Reserved(frozenset({"one"}), frozenset())
    again = await workers.reserve([an_order("one"), an_order("two")], epoch, EPOCH)
    assert again == Reserved(frozenset({"two"}), frozenset({"one"}))
    assert len(await rows(database, "SELECT name FROM workers")) == 2


async def test_the_cap_is_checked_again_where_the_row_is_written(database: Database) -> None:
    epoch, workers = await leading(database), WorkerStore(database)
    done = await workers.reserve([an_order(name, 2) for name in ("one", "two", "three")], epoch, EPOCH)
    assert done == Reserved(frozenset({"one", "two"}), frozenset())


async def test_what_a_former_leader_notes_of_its_worker_is_not_written(database: Database) -> None:
    epoch, workers = await leading(database), WorkerStore(database)
    await workers.reserve([an_order("one")], epoch, EPOCH)
    for late in (
        workers.note_runner("one", 1, 7, epoch - 1, EPOCH),
        workers.note_pod("one", 5, epoch - 1, EPOCH),
    ):
        with pytest.raises(LeadershipLost):
            await late
    noted = "SELECT runner_id, create_rv FROM workers"
    assert await rows(database, noted) == [{"runner_id": None, "create_rv": None}]
    await workers.note_runner("one", 1, 7, epoch, EPOCH)
    await workers.note_pod("one", 5, epoch, EPOCH)
    assert await rows(database, noted) == [{"runner_id": 7, "create_rv": 5}]


# Occurrences are not among them: a failed one may be put back by hand.
MOVES = re.compile(r"UPDATE (jobs|workers)\b[^;]*\bSET[^;]*\bstatus = ")


def test_every_update_of_a_status_names_the_allowed_earlier_ones() -> None:
    moving = {name: text for name, text in statements() if MOVES.search(text)}
    assert len(moving) >= 6
    guarded = re.compile(r"WHERE.*\bstatus (= '(pending|running)'|IN \('pending', 'running'\))", re.S)
    # SEE_PODS moves a status only inside CASE WHEN w.status = 'pending'.
    bare = [
        name
        for name, text in moving.items()
        if not guarded.search(text) and "WHEN w.status = 'pending'" not in text
    ]
    assert bare == []
