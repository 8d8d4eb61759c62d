"""What sync_jobs concludes is written beside the loop, so it must not get into the way of the loop's own steps."""

import asyncio

from controller.domain.changes import Hear
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.jobs import JobStore
from controller.gateways.postgres.leader import Leadership
from tests.clocks import EPOCH
from tests.integration.postgres.queries import rows
from tests.payloads import CATALOGUE, a_delivery, job_payload
from tests.waiting import until

HOLD = "SELECT 1 FROM jobs WHERE job_id = %(job_id)s FOR UPDATE"
WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


async def test_a_job_that_waits_holds_no_other_one(database: Database) -> None:
    intake = Intake(database, CATALOGUE)
    for job_id in (1, 2):
        delivery = a_delivery(job_payload(job={"id": job_id}))
        await intake.take(delivery, known_app=True, allowed=True, now=EPOCH)
    leadership = Leadership(database, "test")
    assert await leadership.acquire(EPOCH)
    assert leadership.epoch is not None
    async with database.transaction() as second:
        await second.execute(HOLD, {"job_id": 2})
        changes = [Hear(job_id, EPOCH) for job_id in (1, 2)]
        applying = asyncio.create_task(JobStore(database).apply(changes, leadership.epoch, EPOCH))

        async def waits() -> bool:
            return bool(await rows(database, WAITING))

        await until(waits)
        await second.execute("SET LOCAL lock_timeout = '10s'")
        await second.execute(HOLD, {"job_id": 1})  # with both in one transaction: a deadlock
    await applying
    assert [row["polls"] for row in await rows(database, "SELECT polls FROM jobs ORDER BY job_id")] == [1, 1]
    await leadership.drop()
