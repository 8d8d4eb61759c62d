"""Runner groups, JIT registration, lists over pages, deletion."""

import asyncio
from dataclasses import replace

import pytest

from controller.errors import GitHubNotFound, GitHubUnavailable, RunnerBusy
from controller.simulators.github import JobSpec
from tests.integration.gateways.github.conftest import GROUP, LABELS, World

CREATE_GROUP = "actions/create-self-hosted-runner-group-for-org"
LIST_GROUPS = "actions/list-self-hosted-runner-groups-for-org"
GROUP_RUNNERS = "actions/list-self-hosted-runners-in-group-for-org"


async def test_our_group_is_made_once_and_then_known(world: World) -> None:
    ids = await asyncio.gather(*(world.gateway.ensure_runner_group(world.acme) for _ in range(10)))
    assert len(set(ids)) == 1
    assert (world.times(LIST_GROUPS), world.times(CREATE_GROUP)) == (1, 1)
    group = world.sim.world.accounts["acme"].groups[ids[0]]
    assert (group.name, group.visibility, group.allows_public_repositories) == (GROUP.name, "all", True)


async def test_a_group_that_is_there_is_found_on_the_last_page(world: World) -> None:
    groups = world.sim.world.accounts["acme"].groups
    for number in range(2, 130):
        groups[number] = replace(groups[1], id=number, name=f"group-{number}", default=False)
    groups[130] = replace(groups[1], id=130, name=GROUP.name, default=False)
    assert await world.gateway.ensure_runner_group(world.acme) == 130
    assert world.times(CREATE_GROUP) == 0


async def test_a_group_that_somebody_deleted_is_made_again(world: World) -> None:
    first = await world.gateway.ensure_runner_group(world.acme)
    del world.sim.world.accounts["acme"].groups[first]
    with pytest.raises(GitHubNotFound):
        await world.gateway.create_jit_runner(world.acme, "runner-1", LABELS, first)
    again = await world.gateway.ensure_runner_group(world.acme)
    assert again != first
    await world.gateway.create_jit_runner(world.acme, "runner-1", LABELS, again)


async def test_an_organizations_runner_is_registered_in_our_group(world: World) -> None:
    group = await world.gateway.ensure_runner_group(world.acme)
    made = await world.gateway.create_jit_runner(world.acme, "runner-1", LABELS, group)
    truth = world.sim.ledger.runner("runner-1")
    assert (truth.runner_id, truth.owner, truth.repository) == (made.runner.id, "acme", None)
    assert (truth.group_id, truth.labels) == (group, LABELS)
    assert not made.runner.online
    assert made.config.reveal()
    assert made.config.reveal() not in repr(made)


async def test_a_persons_runner_is_registered_in_the_repository(world: World) -> None:
    assert await world.gateway.ensure_runner_group(world.jane) == 1
    await world.gateway.create_jit_runner(world.jane, "runner-1", LABELS, 1)
    truth = world.sim.ledger.runner("runner-1")
    assert (truth.repository, truth.group_id) == ("jane/one", 1)
    assert await world.gateway.list_runners(world.github.scope("jane/two")) == ()


async def test_all_runners_are_listed_over_all_pages(world: World) -> None:
    group = await world.gateway.ensure_runner_group(world.acme)
    for number in range(145):
        await world.gateway.create_jit_runner(world.acme, f"runner-{number}", LABELS, group)
    listed = await world.gateway.list_runners(world.acme)
    assert sorted(runner.name for runner in listed) == sorted(f"runner-{n}" for n in range(145))
    assert world.times(GROUP_RUNNERS) == 2


async def test_a_list_that_breaks_on_its_second_page_is_an_error_not_a_shorter_list(world: World) -> None:
    group = await world.gateway.ensure_runner_group(world.acme)
    for number in range(101):
        await world.gateway.create_jit_runner(world.acme, f"runner-{number}", LABELS, group)
    world.sim.faults.add(operation=GROUP_RUNNERS, status=500, skip=1)
    with pytest.raises(GitHubUnavailable):
        await world.gateway.list_runners(world.acme)


async def test_runners_of_other_groups_are_none_of_ours(world: World) -> None:
    group = await world.gateway.ensure_runner_group(world.acme)
    await world.gateway.create_jit_runner(world.acme, "ours", LABELS, group)
    await world.gateway.create_jit_runner(world.acme, "theirs", LABELS, 1)
    assert [runner.name for runner in await world.gateway.list_runners(world.acme)] == ["ours"]


@pytest.mark.parametrize("numeric", [True, False])
async def test_links_may_lead_by_numbers(world: World, numeric: bool) -> None:
    world.sim.behaviour.numeric_links = numeric
    for number in range(101):
        await world.gateway.create_jit_runner(world.jane, f"runner-{number}", LABELS, 1)
    assert len(await world.gateway.list_runners(world.jane)) == 101


async def test_a_runner_is_found_by_name_or_is_not_there(world: World) -> None:
    made = await world.gateway.create_jit_runner(world.jane, "runner-1", LABELS, 1)
    assert await world.gateway.find_runner(world.jane, "runner-1") == made.runner
    assert await world.gateway.find_runner(world.jane, "runner") is None


async def test_deletion_is_done_or_was_done_or_is_refused(world: World) -> None:
    made = await world.gateway.create_jit_runner(world.jane, "runner-1", LABELS, 1)
    await world.gateway.delete_runner(world.jane, made.runner.id)  # 204
    await world.gateway.delete_runner(world.jane, made.runner.id)  # 404
    busy = await world.gateway.create_jit_runner(world.jane, "runner-2", LABELS, 1)
    world.sim.queue_run("jane/one", [JobSpec(LABELS)])
    runner = world.sim.world.runners[busy.runner.id]
    world.sim.runners.connect(runner, "2.335.0")
    world.sim.runners.pick_up(runner)
    with pytest.raises(RunnerBusy):
        await world.gateway.delete_runner(world.jane, busy.runner.id)  # 422
    (listed,) = await world.gateway.list_runners(world.jane)
    assert (listed.online, listed.busy, listed.version) == (True, True, "2.335.0")
