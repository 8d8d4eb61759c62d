"""Which job a worker is bound to: the one of its owner that names it."""

from datetime import timedelta

from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.workers import WorkerStore
from tests.clocks import EPOCH
from tests.integration.postgres.test_reservations import an_order, leading
from tests.payloads import CATALOGUE, JOB_ID, a_delivery, job_payload


async def test_another_owners_runner_of_the_same_name_takes_no_worker_over(database: Database) -> None:
    epoch, workers = await leading(database), WorkerStore(database)
    await workers.reserve([an_order("one")], epoch, EPOCH)
    own = job_payload("in_progress", job={"runner_name": "one"})
    await Intake(database, CATALOGUE).take(a_delivery(own), known_app=True, allowed=True, now=EPOCH)
    assert [worker.job_id for worker in await workers.current()] == [JOB_ID]
    later = (EPOCH + timedelta(hours=1)).isoformat()
    foreign = job_payload("in_progress", job={"id": 99, "runner_name": "one", "started_at": later})
    foreign["repository"]["owner"]["id"] = 6
    await Intake(database, CATALOGUE).take(a_delivery(foreign), known_app=True, allowed=True, now=EPOCH)
    assert [worker.job_id for worker in await workers.current()] == [JOB_ID]
