"""Taking in deliveries: what each leaves in `jobs` and `events`, in any order, once or twice."""

import itertools
from datetime import timedelta
from typing import Any

import pytest

from controller.domain.constants import PENDING_SILENCE, RUNNING_SILENCE
from controller.domain.deliveries import Delivery, Outcome
from controller.domain.pools import Catalogue
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from tests.clocks import EPOCH
from tests.integration.postgres.queries import clear, counts, rows, the_job
from tests.payloads import (
    CATALOGUE,
    COMPLETED,
    CREATED,
    JOB_ID,
    LABELS,
    RUNNER,
    STARTED,
    a_delivery,
    job_payload,
)

CANCELLED: dict[str, Any] = {"conclusion": "cancelled", "runner_name": None, "labels": []}


@pytest.fixture
def intake(database: Database) -> Intake:
    return Intake(database, CATALOGUE)


async def take(intake: Intake, delivery: Delivery, **given: Any) -> Outcome:
    return await intake.take(delivery, **{"known_app": True, "allowed": True, "now": EPOCH, **given})


async def test_a_queued_job_becomes_a_pending_row_with_its_event(database: Database, intake: Intake) -> None:
    delivery = a_delivery()
    assert await take(intake, delivery) is Outcome.JOB_STORED
    job = await the_job(database)
    assert (job["job_id"], job["status"], job["pool"]) == (JOB_ID, "pending", "scw-em-rv1")
    assert (job["entity_name"], job["repo"], job["labels"]) == (
        "example-org",
        "example-org/llvm",
        list(LABELS),
    )
    assert (job["created_at"], job["seen_at"]) == (CREATED, EPOCH)
    assert (job["confirmed"], job["poll_at"]) == (True, EPOCH + PENDING_SILENCE[0])
    (event,) = await rows(database, "SELECT kind, outcome, delivery, source, job_id, app_id FROM events")
    assert event == {
        "kind": "workflow_job.queued",
        "outcome": "job_stored",
        "delivery": delivery.guid,
        "source": "webhook",
        "job_id": JOB_ID,
        "app_id": "111",
    }


async def test_the_same_delivery_again_changes_nothing_and_has_the_same_outcome(
    database: Database, intake: Intake
) -> None:
    delivery = a_delivery()
    first = await take(intake, delivery)
    before = await the_job(database)
    again = await take(intake, delivery, now=EPOCH + timedelta(hours=1))
    assert again is first
    assert await the_job(database) == before
    assert await counts(database) == (1, 1)


async def test_a_started_job_is_bound_to_the_runner_that_github_chose(
    database: Database, intake: Intake
) -> None:
    await take(intake, a_delivery())
    assert await take(intake, a_delivery(job_payload("in_progress"))) is Outcome.JOB_MARKED_RUNNING
    job = await the_job(database)
    assert (job["status"], job["runner_name"], job["started_at"]) == ("running", RUNNER, STARTED)
    assert job["poll_at"] == EPOCH + RUNNING_SILENCE


async def test_a_marked_job_is_bound_all_the_same(database: Database, intake: Intake) -> None:
    await take(intake, a_delivery())
    async with database.transaction() as connection:
        await connection.execute("UPDATE jobs SET mark = 'gave_up'")
    await take(intake, a_delivery(job_payload("in_progress")))
    assert (await the_job(database))["status"] == "running"


async def test_a_job_cancelled_in_the_queue_is_completed_without_ever_having_started(
    database: Database, intake: Intake
) -> None:
    await take(intake, a_delivery())
    ending = a_delivery(job_payload("completed", job=CANCELLED))
    assert await take(intake, ending) is Outcome.JOB_MARKED_COMPLETED
    job = await the_job(database)
    assert (job["status"], job["conclusion"], job["started_at"]) == ("completed", "cancelled", None)


async def test_completed_without_queued_creates_no_row(database: Database, intake: Intake) -> None:
    assert await take(intake, a_delivery(job_payload("completed"))) is Outcome.JOB_NOT_FOUND
    assert await counts(database) == (0, 1)


async def test_in_progress_without_queued_creates_the_row_that_was_lost(
    database: Database, intake: Intake
) -> None:
    assert await take(intake, a_delivery(job_payload("in_progress"))) is Outcome.JOB_MARKED_RUNNING
    assert (await the_job(database))["runner_name"] == RUNNER


@pytest.mark.parametrize("action", ["queued", "in_progress"])
async def test_a_job_with_labels_that_no_pool_serves_is_ignored_but_remembered_with_the_nearest(
    database: Database, intake: Intake, action: str
) -> None:
    delivery = a_delivery(job_payload(action, job={"labels": ["ubuntu-24.04-riscv", "gpu"]}))
    assert await take(intake, delivery) is Outcome.IGNORED_NO_LABEL
    assert await counts(database) == (0, 1)
    (event,) = await rows(database, "SELECT detail FROM events")
    assert event["detail"]["nearest"] == list(LABELS)
    assert event["detail"]["labels"] == ["gpu", "ubuntu-24.04-riscv"]
    assert (event["detail"]["started_at"] is None) is (action == "queued")  # GitHub names a start even then


async def test_a_job_whose_pool_was_removed_meanwhile_is_still_bound_and_completed(
    database: Database, intake: Intake
) -> None:
    await take(intake, a_delivery())
    without_pools = Intake(database, Catalogue(()))
    started = a_delivery(job_payload("in_progress"))
    assert await take(without_pools, started) is Outcome.JOB_MARKED_RUNNING
    ended = a_delivery(job_payload("completed"))
    assert await take(without_pools, ended) is Outcome.JOB_MARKED_COMPLETED


async def test_a_repository_that_may_not_use_the_boards_gets_no_row(
    database: Database, intake: Intake
) -> None:
    assert await take(intake, a_delivery(), allowed=False) is Outcome.NOT_ALLOWED
    started = a_delivery(job_payload("in_progress"))
    assert await take(intake, started, allowed=False) is Outcome.JOB_NOT_FOUND
    assert await counts(database) == (0, 2)


async def test_a_delivery_of_an_app_we_do_not_know_gets_no_row(database: Database, intake: Intake) -> None:
    assert await take(intake, a_delivery(), known_app=False) is Outcome.IGNORED_NO_APP
    assert await counts(database) == (0, 1)


async def test_what_means_nothing_to_us_is_recorded_and_ignored(database: Database, intake: Intake) -> None:
    assert await take(intake, a_delivery({"action": "opened"}, event="issues")) is Outcome.IGNORED_EVENT
    assert await take(intake, a_delivery(job_payload("requested"))) is Outcome.IGNORED_ACTION
    assert await take(intake, a_delivery({"zen": "x"}, event="ping")) is Outcome.OK
    kinds = await rows(database, "SELECT kind FROM events ORDER BY id")
    assert [row["kind"] for row in kinds] == ["issues.opened", "workflow_job.requested", "ping"]


async def test_a_suspended_installation_leaves_an_event(database: Database, intake: Intake) -> None:
    payload = {"action": "suspend", "installation": {"id": 31, "account": {"login": "example-org"}}}
    assert await take(intake, a_delivery(payload, event="installation")) is Outcome.OK
    (event,) = await rows(database, "SELECT kind, installation_id, detail FROM events")
    assert event == {
        "kind": "installation.suspend",
        "installation_id": 31,
        "detail": {"account": "example-org"},
    }


# ---- jobs that wait for an approval


@pytest.mark.parametrize(
    "payload",
    [
        job_payload(job={"status": "waiting"}),
        job_payload(deployment={"id": 1}),
    ],
    ids=["status waiting", "deployment"],
)
async def test_a_queued_job_that_may_wait_for_an_approval_is_looked_at_before_it_counts(
    database: Database, intake: Intake, payload: dict[str, Any]
) -> None:
    assert await take(intake, a_delivery(payload)) is Outcome.JOB_STORED
    job = await the_job(database)
    assert (job["confirmed"], job["poll_at"]) == (False, EPOCH)


@pytest.mark.parametrize("order", [("queued", "waiting"), ("waiting", "queued")], ids="→".join)
async def test_waiting_makes_the_job_unconfirmed_whichever_delivery_came_first(
    database: Database, intake: Intake, order: tuple[str, str]
) -> None:
    for action in order:
        await take(intake, a_delivery(job_payload(action)))
    job = await the_job(database)
    assert (job["status"], job["confirmed"], job["poll_at"]) == ("pending", False, EPOCH)


async def test_a_second_queued_after_the_approval_makes_us_look_at_once(
    database: Database, intake: Intake
) -> None:
    await take(intake, a_delivery(job_payload(deployment={"id": 1})))
    later = EPOCH + timedelta(hours=2)
    assert await take(intake, a_delivery(), now=later) is Outcome.JOB_ALREADY_EXISTS
    assert (await the_job(database))["poll_at"] == later


async def test_waiting_for_a_job_we_do_not_know_creates_no_row(database: Database, intake: Intake) -> None:
    assert await take(intake, a_delivery(job_payload("waiting"))) is Outcome.IGNORED_ACTION
    assert await counts(database) == (0, 1)


async def test_a_late_waiting_does_not_touch_a_job_that_runs(database: Database, intake: Intake) -> None:
    await take(intake, a_delivery(job_payload("in_progress")))
    await take(intake, a_delivery(job_payload("waiting")))
    job = await the_job(database)
    assert (job["status"], job["confirmed"]) == ("running", True)


# ---- any order

ENDS = ("status", "conclusion", "runner_name", "started_at", "completed_at", "pool", "mark")


async def test_every_order_of_deliveries_with_doubles_ends_in_the_same_state(
    database: Database, intake: Intake
) -> None:
    """All orders of queued, in_progress, completed and a double of any of them, by GUID or by content."""
    expected = ("completed", "success", RUNNER, STARTED, COMPLETED, "scw-em-rv1", None)
    actions = ("queued", "in_progress", "completed")
    for doubled, by_guid in itertools.product(actions, (True, False)):
        sent = [a_delivery(job_payload(action)) for action in actions]
        original = sent[actions.index(doubled)]
        double = original if by_guid else a_delivery(job_payload(doubled))
        for order in itertools.permutations([*sent, double]):
            await clear(database)
            for delivery in order:
                await take(intake, delivery)
            job = await the_job(database)
            assert tuple(job[name] for name in ENDS) == expected, [d.notice for d in order]


@pytest.mark.parametrize("order", list(itertools.permutations(["queued", "completed"])), ids="→".join)
async def test_a_cancelled_job_ends_whichever_delivery_came_first(
    database: Database, intake: Intake, order: tuple[str, str]
) -> None:
    for action in order:
        job = CANCELLED if action == "completed" else None
        await take(intake, a_delivery(job_payload(action, job=job)))
    row = await the_job(database)
    assert (row["status"], row["conclusion"], row["runner_name"]) == ("completed", "cancelled", None)


async def test_an_ended_job_is_never_brought_back(database: Database, intake: Intake) -> None:
    await take(intake, a_delivery())
    async with database.transaction() as connection:
        await connection.execute("UPDATE jobs SET status = 'failed', completed_at = %s", [EPOCH])
    for action in ("queued", "in_progress", "completed", "waiting"):
        await take(intake, a_delivery(job_payload(action)))
    assert (await the_job(database))["status"] == "failed"
