"""Tokens, unchanged answers, redirects, limits, and a GitHub that breaks on the way."""

import asyncio
from datetime import timedelta

import pytest

from controller.errors import (
    GitHubConflict,
    GitHubError,
    GitHubUnavailable,
    InstallationGone,
    InstallationSuspended,
    RateLimited,
)
from controller.simulators.github import JobSpec
from tests.integration.gateways.github.conftest import LABELS, World

TOKEN = "apps/create-installation-access-token"
RUNNERS = "actions/list-self-hosted-runners-for-repo"
JOB = "actions/get-job-for-workflow-run"
JIT = "actions/generate-runner-jitconfig-for-repo"


def a_job(world: World) -> int:
    return world.sim.queue_run("jane/one", [JobSpec(LABELS)]).jobs[0].id


async def test_many_calls_at_once_mint_one_token_which_serves_for_most_of_an_hour(world: World) -> None:
    world.sim.faults.add(name="mint", operation=TOKEN, hold="before")
    calls = [asyncio.create_task(world.gateway.list_runners(world.jane)) for _ in range(20)]
    await world.sim.faults.wait_held("mint")
    world.sim.faults.release("mint")
    assert await asyncio.gather(*calls) == [()] * 20
    assert world.times(TOKEN) == 1
    await world.advance(minutes=55)
    await world.gateway.list_runners(world.jane)
    assert world.times(TOKEN) == 1
    await world.advance(minutes=5)
    await world.gateway.list_runners(world.jane)
    assert world.times(TOKEN) == 2
    assert world.times(RUNNERS, status=401) == 0


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_revoked_token_is_replaced_without_anybody_noticing(world: World, stateless: bool) -> None:
    world.sim.behaviour.stateless_tokens = stateless
    await world.gateway.list_runners(world.jane)
    world.sim.revoke_tokens("jane")
    assert await world.gateway.list_runners(world.jane) == ()
    assert world.times(TOKEN) == 2


async def test_each_app_answers_for_its_own_kind_of_account(world: World) -> None:
    await world.gateway.list_runners(world.jane)
    await world.gateway.list_runners(world.acme)
    minted = world.sim.requests.matching(TOKEN)
    assert [each.app_id for each in minted] == [222, 111]


async def test_an_unchanged_answer_costs_nothing(world: World) -> None:
    job_id = a_job(world)
    first = await world.gateway.get_job(world.jane, "jane/one", job_id)
    before = world.gateway.budget(world.jane.installation_id).remaining
    assert await world.gateway.get_job(world.jane, "jane/one", job_id) == first
    assert world.times(JOB, status=304) == 1
    assert world.gateway.budget(world.jane.installation_id).remaining == before
    world.sim.cancel_job(job_id)
    assert (await world.gateway.get_job(world.jane, "jane/one", job_id)).status == "completed"


async def test_an_etag_does_not_outlive_the_token_it_was_given_to(world: World) -> None:
    job_id = a_job(world)
    await world.gateway.get_job(world.jane, "jane/one", job_id)
    world.sim.revoke_tokens("jane")
    assert (await world.gateway.get_job(world.jane, "jane/one", job_id)).status == "queued"


async def test_a_renamed_repository_is_found_under_its_old_name(world: World) -> None:
    job_id = a_job(world)
    world.sim.rename_repository("jane/one", "uno")
    assert (await world.gateway.get_job(world.jane, "jane/one", job_id)).job_id == job_id
    made = await world.gateway.create_jit_runner(world.jane, "runner-1", LABELS, 1)
    assert world.sim.ledger.runner("runner-1").repository == "jane/uno"
    await world.gateway.delete_runner(world.jane, made.runner.id)
    assert world.sim.ledger.runner("runner-1").removed_why == "deleted"


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("retry_after", [True, False])
async def test_a_used_up_limit_is_obeyed_until_its_reset(
    world: World, status: int, retry_after: bool
) -> None:
    limits = world.sim.limits
    limits.primary_status, limits.primary_retry_after = status, retry_after
    installation = world.jane.installation_id
    limits.exhaust(installation)
    with pytest.raises(RateLimited) as raised:
        await world.gateway.list_runners(world.jane)
    asked = world.times(RUNNERS)
    with pytest.raises(RateLimited):
        await world.gateway.list_runners(world.jane)
    assert world.times(RUNNERS) == asked
    assert world.gateway.budget(installation).blocked_until == raised.value.until
    assert raised.value.until is not None
    await world.clock.advance(raised.value.until - world.clock.now() + timedelta(seconds=1))
    assert await world.gateway.list_runners(world.jane) == ()


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("retry_after", [True, False])
async def test_a_secondary_limit_is_obeyed_and_others_go_on(
    world: World, status: int, retry_after: bool
) -> None:
    limits = world.sim.limits
    limits.secondary_status, limits.secondary_retry_after = status, retry_after
    limits.trip_secondary(world.jane.installation_id)
    with pytest.raises(RateLimited):
        await world.gateway.list_runners(world.jane)
    assert await world.gateway.list_runners(world.acme) == ()
    await world.advance(minutes=1)
    assert await world.gateway.list_runners(world.jane) == ()


async def test_the_budget_is_what_the_last_answer_said(world: World) -> None:
    world.sim.limits.exhaust(world.jane.installation_id, leave=100)
    await world.gateway.list_runners(world.jane)
    budget = world.gateway.budget(world.jane.installation_id)
    assert (budget.limit, budget.remaining) == (5_000, 99)
    assert {each.remaining for each in world.seen if each.installation_id} == {99}


async def test_a_suspended_and_an_uninstalled_app_are_told_apart(world: World) -> None:
    world.sim.suspend("jane")
    with pytest.raises(InstallationSuspended):
        await world.gateway.list_runners(world.jane)
    assert (await world.gateway.get_installation("222", world.jane.installation_id)).suspended
    old = world.jane.installation_id
    world.sim.uninstall("jane")
    with pytest.raises(InstallationGone):
        await world.gateway.list_runners(world.jane)
    with pytest.raises(InstallationGone):
        await world.gateway.find_repo_installation("222", "jane/one")
    world.sim.reinstall("jane")
    found = await world.gateway.find_repo_installation("222", "jane/one")
    assert found.installation_id == world.jane.installation_id != old


async def test_a_read_that_breaks_once_is_made_again(world: World) -> None:
    job_id = a_job(world)
    world.sim.faults.add(operation=JOB, drop="before")
    assert (await world.gateway.get_job(world.jane, "jane/one", job_id)).job_id == job_id
    world.sim.faults.add(operation=JOB, status=502, times=2)
    with pytest.raises(GitHubUnavailable):
        await world.gateway.get_job(world.jane, "jane/one", job_id)


async def test_a_jit_call_whose_answer_was_lost_is_not_repeated_and_its_name_is_taken(world: World) -> None:
    world.sim.faults.add(operation=JIT, drop="after")
    with pytest.raises(GitHubUnavailable):
        await world.gateway.create_jit_runner(world.jane, "runner-1", LABELS, 1)
    assert world.times(JIT) == 1
    with pytest.raises(GitHubConflict):
        await world.gateway.create_jit_runner(world.jane, "runner-1", LABELS, 1)
    found = await world.gateway.find_runner(world.jane, "runner-1")
    assert found is not None
    await world.gateway.delete_runner(world.jane, found.id)


async def test_every_error_says_what_was_asked_and_nothing_secret(world: World) -> None:
    world.sim.faults.add(operation=JOB, status=500)
    with pytest.raises(GitHubError) as raised:
        await world.gateway.get_job(world.jane, "jane/one", 1)
    assert "get_job" in str(raised.value)
    assert "ghs_" not in str(raised.value)
