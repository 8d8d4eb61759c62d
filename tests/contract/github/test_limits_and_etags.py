"""Both rate limits in all their forms, and answers that have not changed."""

import asyncio
from datetime import timedelta

import pytest

from tests.clocks import ManualClock
from tests.contract.github.callers import Caller
from tests.waiting import until
from tests.worlds import GitHubWorld

RUNNERS = "/orgs/acme/actions/runners"


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("retry_after", [True, False])
async def test_the_primary_limit_refuses_until_its_reset(
    acme: Caller, github: GitHubWorld, clock: ManualClock, status: int, retry_after: bool
) -> None:
    limits = github.sim.limits
    limits.primary_status, limits.primary_retry_after = status, retry_after
    limits.exhaust(github.scope("acme").installation_id, leave=1)
    assert (await acme.get(RUNNERS)).headers["x-ratelimit-remaining"] == "0"
    refused = await acme.get(RUNNERS)
    assert refused.status_code == status
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert ("retry-after" in refused.headers) is retry_after
    reset = int(refused.headers["x-ratelimit-reset"])
    await clock.advance(timedelta(seconds=reset - clock.now().timestamp() - 1))
    assert (await acme.get(RUNNERS)).status_code == status


async def test_after_the_reset_the_limit_is_full_again(
    app: Caller, github: GitHubWorld, clock: ManualClock
) -> None:
    github.sim.behaviour.token_life = timedelta(hours=3)
    number = github.scope("acme").installation_id
    acme = Caller(app.http, (await app.post(f"/app/installations/{number}/access_tokens")).json()["token"])
    github.sim.limits.exhaust(number)
    assert (await acme.get(RUNNERS)).status_code == 403
    await clock.advance(timedelta(hours=1))
    assert (await acme.get(RUNNERS)).headers["x-ratelimit-remaining"] == "4999"


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("retry_after", [True, False])
async def test_a_secondary_limit_has_requests_left_and_may_say_when_to_come_back(
    acme: Caller, github: GitHubWorld, clock: ManualClock, status: int, retry_after: bool
) -> None:
    limits = github.sim.limits
    limits.secondary_status, limits.secondary_retry_after = status, retry_after
    limits.trip_secondary(github.scope("acme").installation_id)
    refused = await acme.get(RUNNERS)
    assert refused.status_code == status
    assert "secondary rate limit" in refused.json()["message"]
    assert int(refused.headers["x-ratelimit-remaining"]) > 0
    assert ("retry-after" in refused.headers) is retry_after
    await clock.advance(timedelta(minutes=1))
    assert (await acme.get(RUNNERS)).status_code == 200


async def test_who_waits_as_long_as_it_was_told_is_let_in(
    acme: Caller, github: GitHubWorld, clock: ManualClock
) -> None:
    github.sim.limits.trip_secondary(github.scope("acme").installation_id, timedelta(seconds=1.5))
    told = int((await acme.get(RUNNERS)).headers["retry-after"])
    await clock.advance(timedelta(seconds=told))
    assert (await acme.get(RUNNERS)).status_code == 200


async def test_a_write_costs_five_points_of_900_a_minute(acme: Caller, clock: ManualClock) -> None:
    async def register(number: int) -> int:
        body = {"name": f"runner-{number}", "runner_group_id": 1, "labels": ["x"]}
        return (await acme.post(f"{RUNNERS}/generate-jitconfig", body)).status_code

    answers = [await register(number) for number in range(181)]
    assert answers == [201] * 180 + [403]
    await clock.advance(timedelta(minutes=1))
    assert await register(200) == 201


async def test_more_than_a_hundred_requests_at_once_are_too_many(acme: Caller, github: GitHubWorld) -> None:
    github.sim.limits.concurrent = 3
    github.sim.faults.add(name="slow", operation="actions/list-.*", hold="before", times=3)
    waiting = [asyncio.create_task(acme.get(RUNNERS)) for _ in range(3)]
    asked = ("installation", github.scope("acme").installation_id)

    async def all_held() -> bool:
        return github.sim.limits.in_flight[asked] == 3

    await until(all_held)
    assert (await acme.get(RUNNERS)).status_code == 403
    github.sim.faults.release("slow")
    assert [(await each).status_code for each in waiting] == [200, 200, 200]


async def test_one_installations_limit_is_not_anothers(
    acme: Caller, jane: Caller, github: GitHubWorld
) -> None:
    github.sim.limits.exhaust(github.scope("acme").installation_id)
    assert (await acme.get(RUNNERS)).status_code == 403
    assert (await jane.get("/repos/jane/one/actions/runners")).status_code == 200


async def test_an_unchanged_answer_is_a_304_that_costs_nothing(acme: Caller, github: GitHubWorld) -> None:
    first = await acme.get(RUNNERS)
    again = await acme.get_if_changed(RUNNERS, first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    await acme.register("orgs/acme", "one")
    assert (await acme.get_if_changed(RUNNERS, first.headers["etag"])).status_code == 200


async def test_an_etag_holds_for_one_token_and_one_accept_header(
    app: Caller, acme: Caller, github: GitHubWorld
) -> None:
    number = github.scope("acme").installation_id
    other = Caller(app.http, (await app.post(f"/app/installations/{number}/access_tokens")).json()["token"])
    etag = (await acme.get(RUNNERS)).headers["etag"]
    assert (await other.get_if_changed(RUNNERS, etag)).status_code == 200
    plain = await acme.ask("GET", RUNNERS, headers={"If-None-Match": etag, "Accept": "application/json"})
    assert plain.status_code == 200
