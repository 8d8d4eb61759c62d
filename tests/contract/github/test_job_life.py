"""Jobs: hidden for a while, stuck in a completed run, waiting for an approval, expired, under a new address."""

from datetime import timedelta

import pytest

from controller.simulators.github import JobSpec
from tests.clocks import ManualClock
from tests.contract.github.callers import RISCV, Caller, queue
from tests.contract.github.inbox import Inbox
from tests.worlds import GitHubWorld

JANE = "/repos/jane/one"


async def test_a_visible_job_may_be_404_for_a_while(
    jane: Caller, github: GitHubWorld, clock: ManualClock
) -> None:
    job = queue(github.sim)
    github.sim.hide_job(job.id, timedelta(seconds=30))
    assert (await jane.get(f"{JANE}/actions/jobs/{job.id}")).status_code == 404
    listed = await jane.get(f"{JANE}/actions/runs/{job.run.id}/jobs")
    assert [each["id"] for each in listed.json()["jobs"]] == [job.id]
    await clock.advance(timedelta(seconds=30))
    assert (await jane.get(f"{JANE}/actions/jobs/{job.id}")).status_code == 200


async def test_a_run_may_be_completed_while_its_job_stays_queued(
    jane: Caller, github: GitHubWorld, clock: ManualClock, inbox: Inbox
) -> None:
    job = queue(github.sim)
    github.sim.end_run(job.run.id)
    assert (await jane.get(f"{JANE}/actions/runs/{job.run.id}")).json()["status"] == "completed"
    assert (await jane.get(f"{JANE}/actions/jobs/{job.id}")).json()["status"] == "queued"
    await clock.advance(timedelta(hours=25))
    assert github.sim.ledger.job(job.id).status == "queued"
    await github.sim.settle()
    assert inbox.actions(job.id) == ["queued"]


async def test_a_job_that_waits_for_an_approval_is_queued_twice(github: GitHubWorld, inbox: Inbox) -> None:
    job = github.sim.queue_run("jane/one", [JobSpec(RISCV, waiting=True)]).jobs[0]
    await github.sim.settle()
    assert inbox.actions(job.id) == ["queued", "waiting"]
    assert [each.payload["workflow_job"]["status"] for each in inbox.received] == ["waiting", "waiting"]
    github.sim.approve(job.id)
    await github.sim.settle()
    assert inbox.actions(job.id) == ["queued", "waiting", "queued"]
    assert inbox.received[-1].payload["workflow_job"]["status"] == "queued"


@pytest.mark.parametrize(("hours", "status"), [(23, "queued"), (24, "completed")])
async def test_the_queue_ends_after_a_day(
    jane: Caller, github: GitHubWorld, clock: ManualClock, hours: int, status: str
) -> None:
    job = queue(github.sim)
    await clock.advance(timedelta(hours=hours))
    truth = github.sim.ledger.job(job.id)
    assert truth.status == status
    assert truth.conclusion == (None if status == "queued" else "cancelled")


async def test_a_renamed_repository_answers_at_its_old_address_with_a_redirect(
    jane: Caller, github: GitHubWorld
) -> None:
    job = queue(github.sim)
    github.sim.rename_repository("jane/one", "uno")
    moved = await jane.get(f"{JANE}/actions/jobs/{job.id}")
    assert moved.status_code == 301
    assert (await jane.get(moved.headers["location"])).json()["id"] == job.id


async def test_a_rerun_has_new_job_ids_under_the_same_run(
    jane: Caller, github: GitHubWorld, inbox: Inbox
) -> None:
    run = github.sim.queue_run("jane/one", [JobSpec(RISCV), JobSpec(RISCV)])
    github.sim.cancel_job(run.jobs[0].id)
    (again,) = github.sim.rerun_failed(run.id)
    await github.sim.settle()
    assert again.id not in (run.jobs[0].id, run.jobs[1].id)
    told = inbox.told(again.id, "queued")[0].payload["workflow_job"]
    assert (told["run_id"], told["run_attempt"]) == (run.id, 2)
