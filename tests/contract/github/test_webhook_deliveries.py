"""Deliveries: signed, lost, failed, doubled, overtaken; and the list that GitHub keeps of them for three days."""

import hashlib
import hmac
from datetime import timedelta

import pytest

from controller.simulators.github import WebhookRule
from tests.clocks import ManualClock
from tests.contract.github.callers import MINUTE, Caller, queue, sign_jwt
from tests.contract.github.inbox import Inbox
from tests.worlds import GitHubWorld

LIST = "/app/hook/deliveries"


async def test_a_delivery_is_signed_over_its_raw_bytes(github: GitHubWorld, inbox: Inbox) -> None:
    queue(github.sim)
    await github.sim.settle()
    (seen,) = inbox.received
    expected = hmac.new(github.webhook_secret.encode(), seen.body, hashlib.sha256).hexdigest()
    assert seen.headers["x-hub-signature-256"] == f"sha256={expected}"
    assert seen.headers["x-github-hook-installation-target-id"] == "222"


async def test_completed_may_come_before_queued(
    github: GitHubWorld, inbox: Inbox, clock: ManualClock
) -> None:
    github.sim.faults.webhooks.rules.append(WebhookRule("delay", action="queued"))
    job = queue(github.sim)
    github.sim.cancel_job(job.id)
    await github.sim.settle()
    assert inbox.actions(job.id) == ["completed"]
    await clock.advance(timedelta(minutes=1))
    await github.sim.settle()
    assert inbox.actions(job.id) == ["completed", "queued"]


async def test_a_doubled_event_comes_under_two_guids(github: GitHubWorld, inbox: Inbox) -> None:
    github.sim.faults.webhooks.rules.append(WebhookRule("duplicate", action="queued"))
    job = queue(github.sim)
    await github.sim.settle()
    assert len({each.guid for each in inbox.told(job.id, "queued")}) == 2


async def test_reordering_leaves_no_event_out(github: GitHubWorld, inbox: Inbox, clock: ManualClock) -> None:
    github.sim.faults.webhooks.reorder = 0.5
    jobs = [queue(github.sim) for _ in range(20)]
    for job in jobs:
        github.sim.cancel_job(job.id)
    await clock.advance(timedelta(seconds=30))
    await github.sim.settle()
    told = [inbox.actions(job.id) for job in jobs]
    assert ["completed", "queued"] in told
    assert all(sorted(actions, key=str) == ["completed", "queued"] for actions in told)


async def test_a_lost_event_is_nowhere_and_a_failed_one_is_listed(
    github: GitHubWorld, inbox: Inbox, user_app: Caller
) -> None:
    rules = github.sim.faults.webhooks.rules
    rules += [WebhookRule("lose", action="queued"), WebhookRule("fail", action="completed")]
    job = queue(github.sim)
    github.sim.cancel_job(job.id)
    await github.sim.settle()
    assert inbox.received == []
    listed = (await user_app.get(LIST, status="failure")).json()
    assert [(each["event"], each["action"]) for each in listed] == [
        ("workflow_job", "completed"),
        ("installation", "created"),
    ]


@pytest.mark.parametrize("status", [400, 503])
async def test_a_delivery_that_is_refused_is_not_sent_again_by_itself(
    github: GitHubWorld, inbox: Inbox, clock: ManualClock, user_app: Caller, status: int
) -> None:
    inbox.status = status
    queue(github.sim)
    await github.sim.settle()
    await clock.advance(timedelta(hours=1))
    await github.sim.settle()
    assert len(inbox.received) == 1


async def test_a_redelivery_has_the_same_guid_and_another_id(
    github: GitHubWorld, inbox: Inbox, user_app: Caller
) -> None:
    queue(github.sim)
    await github.sim.settle()
    (first, *_) = (await user_app.get(LIST)).json()
    assert (await user_app.post(f"{LIST}/{first['id']}/attempts")).status_code == 202
    await github.sim.settle()
    (second, *_) = (await user_app.get(LIST)).json()
    assert (second["guid"], second["redelivery"]) == (first["guid"], True)
    assert second["id"] != first["id"]
    assert [each.guid for each in inbox.received] == [first["guid"]] * 2


async def test_deliveries_are_listed_newest_first_by_cursor(
    github: GitHubWorld, inbox: Inbox, user_app: Caller
) -> None:
    jobs = [queue(github.sim) for _ in range(5)]
    await github.sim.settle()
    answer = await user_app.get(LIST, per_page=4)
    first, link = answer.json(), answer.links["next"]["url"]
    queue(github.sim)  # a newer one does not shift the pages
    await github.sim.settle()
    rest = await user_app.get(link)
    ids = [each["id"] for each in first + rest.json()]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == len(jobs) + 1  # and the installation's
    assert "next" not in rest.links


@pytest.mark.parametrize(("age", "kept"), [(timedelta(days=3), True), (timedelta(days=3, seconds=1), False)])
async def test_deliveries_are_kept_for_three_days(
    github: GitHubWorld, inbox: Inbox, user_app: Caller, clock: ManualClock, age: timedelta, kept: bool
) -> None:
    github.sim.behaviour.queue_limit = timedelta(days=9)
    queue(github.sim)
    await github.sim.settle()
    await clock.advance(age)
    jwt = sign_jwt(github.apps["222"], "222", clock.now() - MINUTE, clock.now() + 9 * MINUTE)
    fresh = Caller(user_app.http, jwt)
    assert bool((await fresh.get(LIST)).json()) is kept
