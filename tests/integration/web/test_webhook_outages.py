"""A store that is away or slow: 503 in time, nothing half written, and everything well again afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from psycopg import sql

from controller.gateways.postgres.database import Database
from controller.gateways.postgres.migrate import migrate
from controller.ports import Secret
from controller.simulators.postgres import EmbeddedPostgres
from tests.clocks import EPOCH
from tests.integration.postgres.queries import counts, rows
from tests.integration.web.receiving import receiving
from tests.payloads import a_guid, job_payload
from tests.postgres import SCHEMA, opened
from tests.waiting import until

AT_ONCE = timedelta(milliseconds=50)


async def test_a_database_slower_than_the_deadline_is_a_503_and_the_redelivery_is_taken_once(
    database: Database,
) -> None:
    """Whether the server was still stopped in time nobody knows; either way nothing is there by half."""
    guid: dict[str, str | None] = {"X-GitHub-Delivery": a_guid()}
    async with frozen(database, "jobs"), receiving(database, deadline=AT_ONCE) as github:
        answer = await github.send(job_payload(), headers=guid)
        assert (answer.status_code, answer.json()) == (503, {"error": "the store took too long"})
        assert github.counted("workflow_job", "unavailable") == 1
    assert await counts(database) in ((0, 0), (1, 1))
    async with receiving(database) as github:
        assert (await github.send(job_payload(), headers=guid)).json() == {"outcome": "job_stored"}
    assert await counts(database) == (1, 1)


async def test_a_database_that_is_frozen_does_not_hold_up_the_answer(database: Database) -> None:
    """More deliveries than connections: those that get none are answered too."""
    async with receiving(database, deadline=AT_ONCE) as github:
        async with frozen(database, "events"):
            answers = await asyncio.gather(*(github.send(job_payload(job={"id": n})) for n in range(1, 21)))
            assert {answer.status_code for answer in answers} == {503}
        jobs, events = await counts(database)
        assert jobs == events
    async with receiving(database) as github:
        assert (await github.send(job_payload())).status_code == 202


async def test_a_database_that_is_down_is_a_503_and_the_redelivery_is_taken(
    own_postgres: EmbeddedPostgres,
) -> None:
    url = own_postgres.url()
    await migrate(Database(Secret(url), SCHEMA, 2), EPOCH)
    async with opened(url) as database, receiving(database) as github:
        assert (await github.send(job_payload(job={"id": 1}))).status_code == 202
        await asyncio.to_thread(own_postgres.kill)
        guid: dict[str, str | None] = {"X-GitHub-Delivery": a_guid()}
        answer = await github.send(job_payload(), headers=guid)
        assert answer.status_code == 503
        assert url not in answer.text
        await asyncio.to_thread(own_postgres.start)
        assert (await github.send(job_payload(), headers=guid)).json() == {"outcome": "job_stored"}
        assert await counts(database) == (2, 2)


async def test_a_database_without_tables_is_a_503(empty_database_url: str) -> None:
    async with opened(empty_database_url) as database, receiving(database) as github:
        assert (await github.send(job_payload())).status_code == 503


OTHERS = """
SELECT count(*) AS active FROM pg_stat_activity
WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
  AND backend_type = 'client backend'
"""


@asynccontextmanager
async def frozen(database: Database, table: str) -> AsyncIterator[None]:
    """A table that answers nobody; after it, all that waited for it have come to an end."""

    async def idle() -> bool:
        (row,) = await rows(database, OTHERS)
        return bool(row["active"] == 0)

    blocker = await database.connect()
    async with blocker, blocker.transaction():
        await blocker.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(table)))
        yield
    await until(idle)
