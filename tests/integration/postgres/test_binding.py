"""Which job a worker is bound to: the one of its owner that names it."""

from datetime import timedelta

import pytest

from controller.domain.deliveries import Outcome
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.gateways.postgres.workers import WorkerStore
from tests.clocks import EPOCH
from tests.integration.postgres.queries import the_job
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


@pytest.mark.parametrize(
    ("action", "outcome"),
    [("in_progress", Outcome.JOB_MARKED_RUNNING), ("completed", Outcome.JOB_MARKED_COMPLETED)],
)
@pytest.mark.parametrize("barred", ["labels", "repository"])
async def test_what_runs_on_our_runner_has_a_row_though_no_runner_was_to_be_made_for_it(
    database: Database, action: str, outcome: Outcome, barred: str
) -> None:
    epoch, workers = await leading(database), WorkerStore(database)
    await workers.reserve([an_order("one")], epoch, EPOCH)
    labels = {"labels": ["gpu"]} if barred == "labels" else {}
    delivery = a_delivery(job_payload(action, job={"runner_name": "one", **labels}))
    allowed = barred != "repository"
    intake = Intake(database, CATALOGUE)
    assert await intake.take(delivery, known_app=True, allowed=allowed, now=EPOCH) is outcome
    assert (await the_job(database))["status"] == outcome.value.removeprefix("job_marked_")
    assert [worker.job_id for worker in await workers.current()] == [JOB_ID]
