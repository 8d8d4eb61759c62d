"""Jobs, runs, and the deliveries that GitHub keeps."""

import pytest

from controller.errors import GitHubNotFound
from controller.simulators.github import JobSpec
from tests.integration.gateways.github.conftest import LABELS, World


async def test_a_queued_job_has_no_runner_and_no_start(world: World) -> None:
    job = world.sim.queue_run("jane/one", [JobSpec(("Ubuntu-24.04-RISCV",))]).jobs[0]
    for zero in (False, True):
        world.sim.behaviour.absent_runner_is_zero = zero
        seen = await world.gateway.get_job(world.jane, "jane/one", job.id)
        assert (seen.status, seen.runner_name, seen.started_at) == ("queued", None, None)
        assert seen.labels == LABELS


async def test_the_jobs_of_a_run_come_over_all_pages_latest_attempt_only(world: World) -> None:
    run = world.sim.queue_run("acme/widgets", [JobSpec(LABELS) for _ in range(130)])
    world.sim.cancel_run(run.id)
    again = world.sim.rerun_failed(run.id)
    listed = await world.gateway.list_run_jobs(world.acme, "acme/widgets", run.id)
    assert sorted(seen.job_id for seen in listed) == sorted(job.id for job in again)


async def test_runs_are_read_one_by_one_or_those_that_are_queued(world: World) -> None:
    waiting = world.sim.queue_run("acme/widgets", [JobSpec(LABELS)])
    ended = world.sim.queue_run("acme/widgets", [JobSpec(LABELS)])
    world.sim.end_run(ended.id, "cancelled")
    seen = await world.gateway.get_run(world.acme, "acme/widgets", ended.id)
    assert (seen.status, seen.conclusion) == ("completed", "cancelled")
    queued = await world.gateway.list_active_runs(world.acme, "acme/widgets")
    assert [each.run_id for each in queued] == [waiting.id]


async def test_a_job_that_is_not_there_is_not_found(world: World) -> None:
    with pytest.raises(GitHubNotFound):
        await world.gateway.get_job(world.acme, "acme/widgets", 404)


async def test_deliveries_are_read_by_cursor_back_to_a_moment(world: World) -> None:
    for _ in range(60):
        world.sim.queue_run("acme/widgets", [JobSpec(LABELS)])
    await world.sim.settle()
    await world.advance(minutes=10)
    since = world.clock.now()
    for _ in range(130):
        world.sim.queue_run("acme/widgets", [JobSpec(LABELS)])
    await world.sim.settle()
    listed = await world.gateway.list_deliveries("111", since)
    assert len(listed) == 130
    assert [each.id for each in listed] == sorted((each.id for each in listed), reverse=True)
    assert world.times("apps/list-webhook-deliveries") == 2  # the rest is older
    assert not any(each.ok for each in listed)  # nobody listened


async def test_a_delivery_is_fetched_with_its_payload(world: World) -> None:
    job = world.sim.queue_run("acme/widgets", [JobSpec(LABELS)]).jobs[0]
    await world.sim.settle()
    listed = await world.gateway.list_deliveries("111", world.clock.now())
    newest = next(each for each in listed if each.event == "workflow_job")
    fetched = await world.gateway.get_delivery("111", newest.id)
    assert fetched.guid == newest.guid
    assert fetched.payload is not None
    assert fetched.payload["workflow_job"]["id"] == job.id


async def test_an_app_sees_its_own_deliveries_only(world: World) -> None:
    world.sim.queue_run("acme/widgets", [JobSpec(LABELS)])
    await world.sim.settle()
    listed = await world.gateway.list_deliveries("222", world.clock.now())
    assert [each.event for each in listed] == ["installation"]
