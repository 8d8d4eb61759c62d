"""A store that is away or slow: 503 in time, nothing half written, and everything well again afterwards."""

import asyncio
from datetime import timedelta

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


async def test_a_database_slower_than_the_deadline_is_a_503_that_leaves_nothing(database: Database) -> None:
    blocker = await database.connect()
    await blocker.execute("BEGIN")
    await blocker.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
    async with receiving(database, deadline=AT_ONCE) as github:
        answer = await github.send(job_payload())
        assert (answer.status_code, answer.json()) == (503, {"error": "the store took too long"})
        assert github.counted("workflow_job", "unavailable") == 1
    await blocker.execute("COMMIT")
    await blocker.close()
    await until_idle(database)
    assert await counts(database) == (0, 0)


async def test_a_database_that_is_frozen_does_not_hold_up_the_answer(database: Database) -> None:
    """More deliveries than connections: those that get none are answered too."""
    blocker = await database.connect()
    await blocker.execute("BEGIN")
    await blocker.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
    async with receiving(database, deadline=AT_ONCE) as github:
        answers = await asyncio.gather(*(github.send(job_payload(job={"id": n})) for n in range(1, 21)))
        assert {answer.status_code for answer in answers} == {503}
        await blocker.execute("COMMIT")
        await blocker.close()
        await until_idle(database)
        assert await counts(database) == (0, 0)
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


async def until_idle(database: Database) -> None:
    """Return once the cancelled transactions are gone."""

    async def idle() -> bool:
        (row,) = await rows(database, OTHERS)
        return bool(row["active"] == 0)

    await until(idle)
