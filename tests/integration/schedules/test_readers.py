"""Whoever looks at schedules reads on the connections of the pages: neither waits for the other, and none for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from controller.gateways.postgres.database import Database
from tests.clocks import ManualClock
from tests.integration.schedules.clockwork import AnyTime, Clockwork, a_file, fired
from tests.integration.schedules.lives import a_schedule
from tests.integration.schedules.served import an_app
from tests.postgres import opened

ADDRESSES = ("/schedules", "/schedules.json", "/api/schedules", "/queue", "/queue.json")
CONNECTIONS = 2


@pytest.fixture
async def pages(database_url: str) -> AsyncIterator[Database]:
    """The connections of the pages."""
    async with opened(database_url, connections=CONNECTIONS) as pages:
        yield pages


@pytest.fixture
async def loops(database_url: str) -> AsyncIterator[Database]:
    """The connections of the loop."""
    async with opened(database_url, connections=CONNECTIONS) as loops:
        yield loops


@pytest.fixture
async def reader(loops: Database, pages: Database) -> AsyncIterator[httpx.AsyncClient]:
    """Looks at the pages."""
    app = an_app(loops, ManualClock(), a_file([]), pages=pages)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://switchboard.test"
    ) as client:
        yield client


async def hold_all(stack: AsyncExitStack, database: Database) -> None:
    for _ in range(CONNECTIONS):
        await stack.enter_async_context(database.transaction())


async def test_the_loop_goes_round_while_all_connections_of_the_pages_are_taken(
    database: Database, loops: Database, pages: Database, reader: httpx.AsyncClient
) -> None:
    clockwork = Clockwork(
        loops, a_file([a_schedule("often", "interval", "1m", "pause", given={"pool": "rv1"})]), AnyTime()
    )
    async with AsyncExitStack() as held:
        await hold_all(held, pages)
        asked = [asyncio.create_task(reader.get(address)) for address in ADDRESSES]
        await clockwork.run()
        clockwork.clock.at = clockwork.clock.at.replace(minute=5)
        await clockwork.run()
        assert await fired(database, "often")
    assert [(await answer).status_code for answer in asked] == [200] * len(ADDRESSES)
    await clockwork.end()


@pytest.mark.parametrize("address", ADDRESSES)
async def test_schedules_are_shown_while_all_connections_of_the_loop_are_taken(
    loops: Database, reader: httpx.AsyncClient, address: str
) -> None:
    async with AsyncExitStack() as held:
        await hold_all(held, loops)
        assert (await reader.get(address)).status_code == 200


async def test_a_look_at_the_schedules_that_takes_too_long_is_cut_off(
    loops: Database, reader: httpx.AsyncClient
) -> None:
    async with loops.transaction() as connection:
        await connection.execute("LOCK TABLE occurrences IN ACCESS EXCLUSIVE MODE")
        answers = await asyncio.gather(reader.get("/schedules"), reader.get("/queue"))
    assert [answer.status_code for answer in answers] == [503, 503]
