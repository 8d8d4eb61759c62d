"""Leadership: one at a time, a rising epoch, and no write by who led before."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from controller.errors import LeadershipLost, SchemaMismatch, StoreUnavailable
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.leader import Leadership
from controller.gateways.postgres.migrate import migrate
from controller.ports import Secret
from controller.simulators.postgres import EmbeddedPostgres
from tests.clocks import EPOCH
from tests.integration.postgres.queries import rows
from tests.postgres import SCHEMA, opened
from tests.waiting import until

CHILD = """
import asyncio, sys
from datetime import UTC, datetime
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.leader import Leadership
from controller.ports import Secret

async def main():
    leadership = Leadership(Database(Secret(sys.argv[1]), "switchboard", 2), "child")
    print(await leadership.acquire(datetime.now(UTC)), leadership.epoch, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def pair(database_url: str) -> AsyncIterator[tuple[Leadership, Leadership]]:
    async with opened(database_url) as one, opened(database_url) as two:
        first, second = Leadership(one, "first"), Leadership(two, "second")
        yield first, second
        await first.drop()
        await second.drop()


async def test_only_one_leads_and_the_other_stands_by(pair: tuple[Leadership, Leadership]) -> None:
    first, second = pair
    assert await first.acquire(EPOCH)
    assert not await second.acquire(EPOCH)
    assert (first.leads, second.leads) == (True, False)
    assert await first.confirm()
    assert not await second.confirm()


async def test_leading_again_while_leading_does_not_raise_the_epoch(
    pair: tuple[Leadership, Leadership],
) -> None:
    first, _ = pair
    await first.acquire(EPOCH)
    epoch = first.epoch
    assert await first.acquire(EPOCH + timedelta(seconds=15))
    assert first.epoch == epoch


async def test_the_epoch_rises_with_every_change_and_the_row_names_the_leader(
    pair: tuple[Leadership, Leadership], database: Database
) -> None:
    epochs = []
    for leadership in (*pair, *pair):
        while not await leadership.acquire(EPOCH):  # noqa: ASYNC110 -- until the server has seen the end
            await asyncio.sleep(0.01)
        epochs.append(leadership.epoch)
        await leadership.drop()
    assert epochs == [1, 2, 3, 4]
    assert await rows(database, "SELECT holder, epoch FROM leader") == [{"holder": "second", "epoch": 4}]


async def test_a_former_leader_writes_nothing(
    pair: tuple[Leadership, Leadership], database: Database
) -> None:
    first, second = pair
    await first.acquire(EPOCH)
    before = first.epoch
    assert before is not None
    async with database.leading(before) as connection:
        await connection.execute("UPDATE leader SET holder = 'wrote'")
    await first.drop()
    await until(lambda: second.acquire(EPOCH))
    with pytest.raises(LeadershipLost):
        async with database.leading(before) as connection:
            await connection.execute("UPDATE leader SET holder = 'wrote again'")
    assert (await rows(database, "SELECT holder FROM leader")) == [{"holder": "second"}]


async def test_a_successor_waits_for_a_write_that_has_begun(
    pair: tuple[Leadership, Leadership], database: Database
) -> None:
    """The former leader's last transaction is committed before the new epoch exists, never after."""
    first, second = pair
    await first.acquire(EPOCH)
    assert first.epoch is not None
    async with database.leading(first.epoch):
        await first.drop()
        rising = asyncio.create_task(until(lambda: second.acquire(EPOCH)))

        async def waits() -> bool:
            blocked = await rows(
                database,
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
            )
            return bool(blocked)

        await until(waits)
        assert not rising.done()
    await rising
    assert second.leads


async def test_a_killed_leader_is_replaced(database_url: str, pair: tuple[Leadership, Leadership]) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, database_url, stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    assert child.stdout is not None
    assert (await child.stdout.readline()).split() == [b"True", b"1"]
    successor, _ = pair
    assert not await successor.acquire(EPOCH)
    child.send_signal(signal.SIGKILL)
    await child.wait()

    async def leads() -> bool:
        return await successor.acquire(EPOCH)

    await until(leads)
    assert successor.epoch == 2


async def test_a_leader_whose_connection_is_cut_leads_no_more(
    pair: tuple[Leadership, Leadership], database: Database
) -> None:
    first, second = pair
    await first.acquire(EPOCH)
    await rows(
        database,
        "SELECT pg_terminate_backend(pid) FROM pg_locks"
        " WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    assert not await first.confirm()
    assert not first.leads

    async def leads() -> bool:
        return await second.acquire(EPOCH)

    await until(leads)
    assert second.epoch == 2


async def test_without_a_database_nobody_leads(own_postgres: EmbeddedPostgres) -> None:
    url = own_postgres.url()
    database = Database(Secret(url), SCHEMA, 2)
    await migrate(database, EPOCH)
    leadership = Leadership(database, "first")
    await leadership.acquire(EPOCH)
    await asyncio.to_thread(own_postgres.kill)
    assert not await leadership.confirm()
    with pytest.raises(StoreUnavailable):
        await leadership.acquire(EPOCH)
    await asyncio.to_thread(own_postgres.start)
    assert await leadership.acquire(EPOCH)
    assert leadership.epoch == 2
    await leadership.drop()


async def test_a_claim_that_cannot_be_written_down_is_let_go(
    pair: tuple[Leadership, Leadership], database: Database
) -> None:
    first, second = pair
    await rows(database, "DELETE FROM leader RETURNING id")
    with pytest.raises(SchemaMismatch, match="switchboard migrate"):
        await first.acquire(EPOCH)
    async with database.transaction() as connection:
        await connection.execute("INSERT INTO leader (holder, epoch, since) VALUES ('', 0, 'epoch')")
    await until(lambda: second.acquire(EPOCH))  # the server notices a closed connection in its own time


async def test_two_schemas_of_one_database_have_a_leader_each(
    pair: tuple[Leadership, Leadership], database_url: str
) -> None:
    first, _ = pair
    await first.acquire(EPOCH)
    async with opened(database_url, schema="staging") as other:
        await migrate(other, EPOCH)
        leadership = Leadership(other, "other")
        assert await leadership.acquire(EPOCH)
        await leadership.drop()
