"""Runners: registered, listed over pages, given other jobs than those they were made for, removed."""

from datetime import timedelta

import httpx
import pytest

from tests.clocks import ManualClock
from tests.contract.github.callers import RISCV, Caller, queue
from tests.worlds import GitHubWorld

ACME = "orgs/acme"
JANE = "repos/jane/one"


async def names_over_pages(caller: Caller, path: str) -> list[list[str]]:
    pages: list[list[str]] = []
    answer = await caller.get(path, per_page=100)
    while True:
        pages.append([each["name"] for each in answer.json()["runners"]])
        following = answer.links.get("next")
        if following is None:
            return pages
        answer = await caller.get(following["url"])


async def test_more_than_a_hundred_runners_come_over_pages(acme: Caller) -> None:
    made = [f"runner-{number}" for number in range(105)]
    for name in made:
        await acme.register(ACME, name)
    pages = await names_over_pages(acme, "/orgs/acme/actions/runners")
    assert [len(page) for page in pages] == [100, 5]
    assert [name for page in pages for name in page] == made


async def test_a_list_may_be_in_another_order_on_the_next_page(acme: Caller, github: GitHubWorld) -> None:
    github.sim.behaviour.shuffle_lists = True
    for number in range(120):
        await acme.register(ACME, f"runner-{number}")
    first, second = await names_over_pages(acme, "/orgs/acme/actions/runners")
    assert set(first) & set(second)  # so some are missed: a list over pages is no proof of absence


async def test_a_jit_call_whose_answer_is_lost_has_registered_the_runner(
    acme: Caller, github: GitHubWorld
) -> None:
    github.sim.faults.add(operation="actions/generate-runner-jitconfig-for-org", drop="after")
    body = {"name": "one", "runner_group_id": 1, "labels": list(RISCV)}
    with pytest.raises(httpx.RemoteProtocolError):
        await acme.post("/orgs/acme/actions/runners/generate-jitconfig", body)
    listed = (await acme.get("/orgs/acme/actions/runners")).json()["runners"]
    assert [(each["name"], each["status"]) for each in listed] == [("one", "offline")]
    assert (await acme.post("/orgs/acme/actions/runners/generate-jitconfig", body)).status_code == 409


async def test_a_busy_runner_is_not_deleted_and_a_gone_one_not_found(
    jane: Caller, github: GitHubWorld
) -> None:
    queue(github.sim)
    runner = await jane.register(JANE, "one")
    await runner.connect()
    job_id = await runner.take()
    assert (await jane.delete(f"/{JANE}/actions/runners/{runner.id}")).status_code == 422
    assert (await runner.finish(job_id)).status_code == 204
    assert (await jane.delete(f"/{JANE}/actions/runners/{runner.id}")).status_code == 404


async def test_a_runner_takes_any_job_whose_labels_it_has_whoever_it_was_made_for(
    jane: Caller, github: GitHubWorld
) -> None:
    small = queue(github.sim, "a")
    queue(github.sim, "a", "b")
    large = await jane.register(JANE, "made-for-a-and-b", ("a", "b"))
    await large.connect()
    assert await large.take() == small.id


async def test_a_job_that_is_not_picked_up_within_a_minute_is_queued_again(
    jane: Caller, github: GitHubWorld, clock: ManualClock
) -> None:
    silent, willing = await jane.register(JANE, "silent"), await jane.register(JANE, "willing")
    await silent.connect()
    job = queue(github.sim)
    await clock.advance(timedelta(seconds=59))
    await willing.connect()
    assert (await willing.poll()).status_code == 204
    await clock.advance(timedelta(seconds=2))
    assert await willing.take() == job.id
    assert "requeued" in [what for _, what in github.sim.ledger.job(job.id).events]


async def test_busy_is_shown_late(jane: Caller, github: GitHubWorld, clock: ManualClock) -> None:
    github.sim.behaviour.busy_lag = timedelta(seconds=60)
    queue(github.sim)
    runner = await jane.register(JANE, "one")
    await runner.connect()
    await runner.take()
    where = f"/{JANE}/actions/runners/{runner.id}"
    assert (await jane.get(where)).json()["busy"] is False
    await clock.advance(timedelta(seconds=60))
    assert (await jane.get(where)).json()["busy"] is True


async def test_a_runner_may_be_offline_and_busy_and_its_job_fails_in_the_end(
    jane: Caller, github: GitHubWorld, clock: ManualClock
) -> None:
    job = queue(github.sim)
    runner = await jane.register(JANE, "one")
    await runner.connect()
    await runner.take()
    await clock.advance(timedelta(seconds=100))
    shown = (await jane.get(f"/{JANE}/actions/runners/{runner.id}")).json()
    assert (shown["status"], shown["busy"]) == ("offline", True)
    await clock.advance(timedelta(minutes=10))
    assert github.sim.ledger.job(job.id).conclusion == "failure"
    assert github.sim.ledger.runner("one").removed_why == "lease_expired"


@pytest.mark.parametrize(("hours", "there"), [(23, True), (25, False)])
async def test_a_registration_that_never_came_online_is_removed_after_a_day(
    jane: Caller, github: GitHubWorld, clock: ManualClock, hours: int, there: bool
) -> None:
    await jane.register(JANE, "one")
    await clock.advance(timedelta(hours=hours))
    assert (github.sim.ledger.runner("one").removed_at is None) is there


async def test_an_idle_registration_may_vanish_after_minutes(
    jane: Caller, github: GitHubWorld, clock: ManualClock
) -> None:
    github.sim.behaviour.remove_idle_after = timedelta(minutes=5)
    runner = await jane.register(JANE, "one")
    await runner.connect()
    await clock.advance(timedelta(minutes=5, seconds=1))
    assert (await runner.poll()).status_code == 404
    assert github.sim.ledger.runner("one").removed_why == "idle_too_long"


async def test_a_runner_that_is_too_old_is_refused(jane: Caller, github: GitHubWorld) -> None:
    github.sim.refuse_runner_versions("jane", "2.330.0")
    runner = await jane.register(JANE, "one")
    assert (await runner.connect("2.329.9")).status_code == 426
    assert (await runner.connect("2.330.0")).status_code == 200
