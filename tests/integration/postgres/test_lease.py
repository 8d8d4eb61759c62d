"""The lease: whoever leads and falls silent is replaced, and a silent database is nobody's to wait for."""

import asyncio

import pytest
from psycopg.errors import IdleInTransactionSessionTimeout

from controller.errors import StoreUnavailable
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.leader import ANSWER_SECONDS, LEASE, RENEW_EVERY, Leadership
from controller.ports import Secret
from tests.clocks import EPOCH
from tests.integration.postgres.queries import rows
from tests.integration.processes.proxies import a_proxy
from tests.postgres import SCHEMA, opened
from tests.waiting import until

LEASED = "SELECT 1 FROM pg_stat_activity WHERE starts_with(query, 'SET idle_session_timeout')"


def test_a_leader_gives_up_sooner_than_the_server_lets_another_lead() -> None:
    assert RENEW_EVERY.total_seconds() + ANSWER_SECONDS < LEASE.total_seconds()
    assert f"'{LEASE.seconds}s'" in Leadership.LEND


async def test_a_leader_that_says_nothing_is_replaced_though_it_holds_a_transaction_open(
    database_url: str, database: Database
) -> None:
    """As a paused process does: its connections live, its locks are held, its kernel acknowledges everything."""
    async with opened(database_url) as other:
        paused, successor = Leadership(database, "paused"), Leadership(other, "successor")
        assert await paused.acquire(EPOCH)
        assert paused.epoch is not None
        renewing = asyncio.create_task(paused.lost())

        async def has_lease() -> bool:
            return bool(await rows(other, LEASED))

        await until(has_lease)
        renewing.cancel()

        async def write_late(epoch: int) -> None:
            """On a connection that nobody cuts from this side: whoever is paused cuts nothing."""
            connection = await database.connect()
            async with connection, connection.transaction():
                await connection.execute(Database.LEADS, {"epoch": epoch})
                await connection.execute("LOCK TABLE workers IN EXCLUSIVE MODE")
                await until(lambda: successor.acquire(EPOCH))
                await connection.execute("UPDATE leader SET holder = 'paused again'")

        with pytest.raises(IdleInTransactionSessionTimeout):
            await write_late(paused.epoch)
        assert await rows(other, "SELECT holder, epoch FROM leader") == [{"holder": "successor", "epoch": 2}]
        assert not await paused.confirm()
        await successor.drop()


async def test_a_leader_that_renews_its_lease_keeps_it(database_url: str, database: Database) -> None:
    async with opened(database_url) as other:
        leader, rival = Leadership(database, "leader"), Leadership(other, "rival")
        await leader.acquire(EPOCH)
        renewing = asyncio.create_task(leader.lost())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout((LEASE + RENEW_EVERY).total_seconds()):
                await until(lambda: rival.acquire(EPOCH))
        assert await leader.confirm()
        renewing.cancel()
        await leader.drop()
        await rival.drop()


async def test_when_the_database_falls_silent_leadership_is_lost_and_what_is_under_way_ends(
    database_url: str,
) -> None:
    async with a_proxy(database_url) as proxy:
        database = Database(Secret(proxy.url), SCHEMA, 2)
        await database.open()
        leadership = Leadership(database, "cut off")
        await leadership.acquire(EPOCH)
        losing = asyncio.create_task(leadership.lost())

        async def ask() -> None:
            async with database.transaction() as connection:
                proxy.fall_silent()
                await connection.execute("SELECT 1")

        with pytest.raises(StoreUnavailable):
            await ask()
        await losing
        assert leadership.epoch is None
        await database.close()
