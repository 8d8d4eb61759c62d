"""Deliveries that arrive at the same moment, through two processes."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from controller.domain.deliveries import Delivery, Outcome
from controller.errors import StoreError
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.intake import Intake
from tests.clocks import EPOCH
from tests.integration.postgres.queries import clear, counts, rows, the_job
from tests.payloads import CATALOGUE, RUNNER, a_delivery, job_payload
from tests.postgres import opened
from tests.waiting import until

ROUNDS = 15
SAME_GUID = "INSERT INTO events (at, source, kind, delivery) VALUES (%(now)s, 'webhook', 'blocker', %(guid)s)"


@pytest.fixture
async def replicas(database_url: str) -> AsyncIterator[tuple[Intake, Intake]]:
    async with opened(database_url) as first, opened(database_url) as second:
        yield Intake(first, CATALOGUE), Intake(second, CATALOGUE)


async def at_once(replicas: tuple[Intake, Intake], deliveries: list[Delivery]) -> list[Outcome]:
    taking = [
        intake.take(delivery, known_app=True, allowed=True, now=EPOCH)
        for delivery, intake in zip(deliveries, itertools.cycle(replicas), strict=False)
    ]
    return list(await asyncio.gather(*taking))


async def test_the_same_delivery_through_two_replicas_is_taken_once(
    replicas: tuple[Intake, Intake], database: Database
) -> None:
    for _ in range(ROUNDS):
        await clear(database)
        delivery = a_delivery()
        outcomes = await at_once(replicas, [delivery] * 4)
        assert outcomes == [Outcome.JOB_STORED] * 4
        assert await counts(database) == (1, 1)


async def test_one_guid_for_two_jobs_stores_only_the_first_of_them(
    replicas: tuple[Intake, Intake], database: Database
) -> None:
    first = a_delivery()
    second = a_delivery(job_payload(job={"id": 4_201}), guid=first.guid)
    await at_once(replicas, [first, second])
    assert await counts(database) == (1, 1)


@pytest.mark.parametrize(
    "actions",
    list(itertools.permutations(["queued", "in_progress", "completed"])),
    ids="→".join,
)
async def test_a_completed_that_arrives_with_its_queued_is_not_lost(
    replicas: tuple[Intake, Intake], database: Database, actions: tuple[str, ...]
) -> None:
    for _ in range(ROUNDS):
        await clear(database)
        await at_once(replicas, [a_delivery(job_payload(action)) for action in actions])
        job = await the_job(database)
        assert (job["status"], job["runner_name"]) == ("completed", RUNNER)
        assert (await counts(database))[1] == 3


async def test_a_completed_waits_for_the_queued_that_is_being_stored(
    replicas: tuple[Intake, Intake], database: Database
) -> None:
    """The race itself, held open: `queued` has looked for an ending, found none, and has not committed."""
    start = a_delivery()
    blocker = await database.connect()
    await blocker.execute("BEGIN")
    await blocker.execute(SAME_GUID, {"guid": start.guid, "now": EPOCH})
    first, second = replicas
    queued = asyncio.create_task(first.take(start, known_app=True, allowed=True, now=EPOCH))
    await until_blocked(database, 1)
    ending = a_delivery(job_payload("completed"))
    completed = asyncio.create_task(second.take(ending, known_app=True, allowed=True, now=EPOCH))
    await until_blocked(database, 2)
    await blocker.execute("ROLLBACK")
    await blocker.close()
    assert (await queued, await completed) == (Outcome.JOB_STORED, Outcome.JOB_MARKED_COMPLETED)
    assert (await the_job(database))["status"] == "completed"


async def test_a_delivery_does_not_wait_for_the_lock_of_sync_workers(
    replicas: tuple[Intake, Intake], database: Database
) -> None:
    async with database.transaction() as connection:
        await connection.execute("LOCK TABLE workers IN EXCLUSIVE MODE")
        actions = ("queued", "in_progress", "completed")
        await at_once(replicas, [a_delivery(job_payload(action)) for action in actions])
    assert (await the_job(database))["status"] == "completed"


# ---- the doorbell


async def heard(listener: Connection) -> int:
    """How many notifications have come, up to one that we send ourselves."""
    await listener.execute("SELECT pg_notify('switchboard_queue_event', 'last')")
    number = 0
    async for notice in listener.notifies(timeout=30):
        if notice.payload == "last":
            break
        number += 1
    return number


@pytest.fixture
async def listener(database: Database) -> AsyncIterator[Connection]:
    connection = await database.connect()
    await connection.execute(b"LISTEN switchboard_queue_event")
    yield connection
    await connection.close()


async def test_every_delivery_that_changes_a_job_rings_once(database: Database, listener: Connection) -> None:
    intake = Intake(database, CATALOGUE)
    for action in ("queued", "in_progress", "completed"):
        delivery = a_delivery(job_payload(action))
        for _ in range(2):
            await intake.take(delivery, known_app=True, allowed=True, now=EPOCH)
        assert await heard(listener) == 1


async def test_a_delivery_that_changes_nothing_wakes_nobody(database: Database, listener: Connection) -> None:
    intake = Intake(database, CATALOGUE)
    for payload in (job_payload(job={"labels": ["ubuntu-latest"]}), job_payload("completed", job={"id": 1})):
        await intake.take(a_delivery(payload), known_app=True, allowed=True, now=EPOCH)
    assert await heard(listener) == 0


async def test_nothing_rings_before_the_commit(database: Database, listener: Connection) -> None:
    """A take that fails after storing the job leaves neither a row nor a ring."""
    async with database.transaction() as connection:
        await connection.execute("ALTER TABLE events ADD CONSTRAINT none CHECK (false)")
    with pytest.raises(StoreError):
        await Intake(database, CATALOGUE).take(a_delivery(), known_app=True, allowed=True, now=EPOCH)
    assert await counts(database) == (0, 0)
    assert await heard(listener) == 0


WAITING = """
SELECT count(*) AS blocked FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database()
"""


async def until_blocked(database: Database, number: int) -> None:
    """Return once so many sessions wait for a lock."""

    async def blocked() -> bool:
        (row,) = await rows(database, WAITING)
        return bool(row["blocked"] >= number)

    await until(blocked)
