"""The doorbell: every ring is heard, and after a broken connection one ring always comes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from psycopg import Rollback

from controller.gateways.postgres.database import Database, ring
from controller.gateways.postgres.listener import RETRY, Listener
from controller.gateways.postgres.migrate import migrate
from controller.ports import Secret
from controller.simulators.postgres import EmbeddedPostgres
from tests.clocks import EPOCH, ManualClock
from tests.integration.postgres.queries import rows
from tests.postgres import SCHEMA, opened
from tests.waiting import until

CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE starts_with(query, 'LISTEN') AND datname = current_database()
"""


class Wakes:
    """Counts the wake-ups of one listener."""

    def __init__(self, database: Database) -> None:
        self.number = 0
        self.clock = ManualClock()
        self.listener = Listener(database, self.clock, self._wake)

    def _wake(self) -> None:
        self.number += 1

    async def reach(self, number: int) -> None:
        """Wait for so many wake-ups in all, letting the listener retry whenever it waits to."""

        async def reached() -> bool:
            if self.clock.next_due is not None:
                await self.clock.advance(RETRY)
            return self.number >= number

        await until(reached)


@pytest.fixture
async def wakes(database: Database) -> AsyncIterator[Wakes]:
    wakes = Wakes(database)
    task = asyncio.create_task(wakes.listener.run())
    await wakes.reach(1)
    yield wakes
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def a_ring(database: Database) -> None:
    async with database.transaction() as connection:
        await ring(connection, database.channel)


async def test_every_ring_wakes_once(database: Database, wakes: Wakes) -> None:
    for expected in (2, 3, 4):
        await a_ring(database)
        await wakes.reach(expected)
        assert wakes.number == expected


async def test_a_transaction_that_is_rolled_back_rings_nobody(database: Database, wakes: Wakes) -> None:
    async with database.transaction() as connection:
        await ring(connection, database.channel)
        raise Rollback
    await a_ring(database)
    await wakes.reach(2)
    assert wakes.number == 2


async def test_another_schemas_ring_is_not_ours(database: Database, wakes: Wakes) -> None:
    async with database.transaction() as connection:
        await ring(connection, "staging_queue_event")
    await a_ring(database)
    await wakes.reach(2)
    assert wakes.number == 2


async def test_after_a_cut_connection_it_wakes_by_itself_since_rings_may_have_been_lost(
    database: Database, wakes: Wakes
) -> None:
    await rows(database, CUT)
    await wakes.reach(2)
    assert wakes.listener.connected
    await a_ring(database)
    await wakes.reach(3)


async def test_a_listener_that_has_lost_its_database_says_so_and_comes_back(
    own_postgres: EmbeddedPostgres,
) -> None:
    url = own_postgres.url()
    await migrate(Database(Secret(url), SCHEMA, 2), EPOCH)
    async with opened(url) as database:
        wakes = Wakes(database)
        task = asyncio.create_task(wakes.listener.run())
        await wakes.reach(1)
        await asyncio.to_thread(own_postgres.kill)

        async def lost() -> bool:
            return not wakes.listener.connected

        await until(lost)
        for _ in range(3):
            await wakes.clock.advance(timedelta(seconds=1))
        await asyncio.to_thread(own_postgres.start)
        await wakes.reach(2)
        assert wakes.listener.connected
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
