"""What is written under the lock of the workers table: many sightings at once, and no bad row undoes the others."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import pytest

from controller.domain.changes import Finish, PodGone, ReadRunner, SeePod, WorkerChange
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.locked_workers import LOOKED_AT, LockedRows
from controller.gateways.postgres.workers import WorkerStore
from tests.clocks import EPOCH
from tests.integration.postgres.queries import rows
from tests.integration.postgres.test_reservations import an_order, leading
from tests.payloads import CATALOGUE, a_delivery, job_payload

LATER = EPOCH + timedelta(seconds=60)


class Counted:
    """A connection that counts what it is asked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.asked = 0

    async def execute(self, query: Any, values: Any) -> Any:
        self.asked += 1
        return await self._connection.execute(query, values)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._connection.transaction()


def read(name: str, version: str | None = "2.330.0", *, busy: bool = False) -> ReadRunner:
    return ReadRunner(name, LATER, listed=True, online=True, busy=busy, runner_id=7, version=version)


def pod(name: str) -> SeePod:
    return SeePod(name, EPOCH, 5, "board-1", LATER)


async def reserved(database: Database, number: int) -> tuple[int, list[str]]:
    """So many pending workers, and the epoch to write with."""
    epoch = await leading(database)
    names = [f"worker-{n}" for n in range(number)]
    await WorkerStore(database).reserve([an_order(name) for name in names], epoch, EPOCH)
    return epoch, names


async def apply(database: Database, epoch: int, changes: Sequence[WorkerChange]) -> list[bool]:
    async with WorkerStore(database).locked(epoch) as locked:
        return await locked.apply(changes, LATER)


@pytest.mark.parametrize("kind", [read, pod])
async def test_what_is_seen_of_many_workers_is_one_statement(database: Database, kind: Any) -> None:
    _, names = await reserved(database, 30)
    async with database.transaction() as connection:
        counted: Any = Counted(connection)
        assert await LockedRows(counted).apply([kind(name) for name in names], LATER) == [True] * 30
    assert counted.asked == 1


async def test_pods_and_readings_are_noted_of_each_worker_its_own(database: Database) -> None:
    epoch, _ = await reserved(database, 3)
    seen = [pod("worker-0"), SeePod("worker-1", EPOCH, 6, None, None)]
    listed = [read("worker-0"), read("worker-1", busy=True)]
    assert await apply(database, epoch, [*seen, *listed]) == [True] * 4
    noted = "status, node, create_rv, running_at, idle_since, not_busy_since, busy_since, read_at"
    found = await rows(database, f"SELECT {noted} FROM workers ORDER BY name")
    assert [tuple(row.values()) for row in found] == [
        ("running", "board-1", 5, LATER, LATER, LATER, None, LATER),
        ("pending", None, 6, None, None, None, LATER, LATER),
        ("pending", None, None, None, None, None, None, None),
    ]


async def test_a_bad_row_does_not_undo_the_others(database: Database) -> None:
    epoch, _ = await reserved(database, 3)
    changes: list[WorkerChange] = [read("worker-0"), read("worker-1", "no text: \0"), Finish("worker-2")]
    assert await apply(database, epoch, changes) == [True, False, True]
    found = await rows(database, "SELECT runner_version, status FROM workers ORDER BY name")
    assert [tuple(row.values()) for row in found] == [
        ("2.330.0", "pending"),
        (None, "pending"),
        (None, "completed"),
    ]


async def test_a_row_that_has_moved_on_says_so(database: Database) -> None:
    epoch, _ = await reserved(database, 2)
    assert await apply(database, epoch, [Finish("worker-0")]) == [True]
    late: list[WorkerChange] = [read("worker-0"), read("worker-1"), Finish("worker-0"), read("nobody")]
    assert await apply(database, epoch, late) == [False, True, False, False]


async def test_when_a_runner_ended_well_and_its_job_is_not_known_the_oldest_that_wait_are_looked_at(
    database: Database,
) -> None:
    epoch, _ = await reserved(database, 1)
    intake = Intake(database, CATALOGUE)
    for number in range(LOOKED_AT + 20):
        at = (EPOCH + timedelta(seconds=number)).isoformat()
        waiting = a_delivery(job_payload("queued", job={"id": 10_000 - number, "created_at": at}))
        await intake.take(waiting, known_app=True, allowed=True, now=LATER)
    assert await apply(database, epoch, [PodGone("worker-0", EPOCH, look=True)]) == [True]
    (seen,) = await rows(
        database,
        "SELECT count(*) AS due, max(created_at) < (SELECT max(created_at) FROM jobs) AS oldest FROM jobs "
        "WHERE poll_at = %(now)s",
        now=LATER,
    )
    assert seen == {"due": LOOKED_AT, "oldest": True}
