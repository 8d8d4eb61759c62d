"""The calls of the port: each may be repeated, and each failure is one of our own errors."""

import pytest

from controller.domain.sightings import PodPhase
from controller.errors import ClusterConflict, ClusterForbidden, ClusterRefused, ClusterUnavailable
from controller.gateways.kubernetes.pod import ENDING_REASON
from controller.simulators.cluster import Behaviour
from tests.integration.gateways.kubernetes.conftest import JIT, World, an_order


async def test_a_runner_pod_is_made_placed_and_seen_running(world: World) -> None:
    created = await world.create("runner-1")
    await world.advance(10)
    pod = await world.gateway.get_pod("runner-1")
    assert pod is not None
    assert (pod.uid, pod.phase, pod.node, pod.slots) == (created.uid, PodPhase.RUNNING, "board-1", 1)
    assert pod.accepted_at is not None
    assert pod.running_at is not None


async def test_creating_a_pod_twice_answers_with_the_one_that_is_there(world: World) -> None:
    first = await world.create("runner-1")
    second = await world.create("runner-1")
    assert first.uid == second.uid


async def test_a_pod_of_another_installation_is_not_taken_for_ours(world: World) -> None:
    await world.gateway.create_pod(an_order("runner-1", instance="staging"))
    with pytest.raises(ClusterConflict):
        await world.gateway.create_pod(an_order("runner-1"))


async def test_a_pod_that_is_being_deleted_is_not_taken_for_ours(world: World) -> None:
    await world.create("runner-1")
    await world.advance(10)
    world.sim.kill_kubelet("board-1")
    await world.gateway.delete_pod("runner-1")
    with pytest.raises(ClusterConflict, match="being deleted"):
        await world.gateway.create_pod(an_order("runner-1"))


async def test_a_lost_answer_to_create_is_repaired_by_asking_again(world: World) -> None:
    world.sim.faults.add(operation="create pods", drop="after")
    with pytest.raises(ClusterUnavailable):
        await world.gateway.create_pod(an_order("runner-1"))
    assert (await world.gateway.create_pod(an_order("runner-1"))).uid == world.sim.pods()[0]["metadata"][
        "uid"
    ]


async def test_a_pod_that_is_refused_says_which_field(world: World) -> None:
    manifest = an_order("Not_A_Name")
    with pytest.raises(ClusterRefused, match=r"metadata\.name"):
        await world.gateway.create_pod(manifest)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, ClusterForbidden),
        (429, ClusterUnavailable),
        (500, ClusterUnavailable),
        (503, ClusterUnavailable),
    ],
)
async def test_bad_answers_become_errors_of_ours(world: World, status: int, error: type[Exception]) -> None:
    world.sim.faults.add(operation="create pods", status=status)
    with pytest.raises(error):
        await world.gateway.create_pod(an_order("runner-1"))
    assert world.sim.pods() == []


async def test_a_secret_can_be_created_again_and_goes_with_its_pod(world: World) -> None:
    await world.create("runner-1")
    await world.gateway.create_secret("runner-1", JIT, {})
    assert list(await world.gateway.list_secrets()) == ["runner-1"]
    await world.gateway.force_delete_pod("runner-1")
    await world.sim.settle()
    assert await world.gateway.list_secrets() == {}


async def test_a_secret_of_a_pod_that_is_gone_is_collected_as_soon_as_it_is_owned(world: World) -> None:
    created = await world.create("runner-1")
    await world.gateway.force_delete_pod("runner-1")
    await world.gateway.create_secret("runner-1", JIT, {})
    await world.gateway.own_secret("runner-1", created.uid)
    await world.sim.settle()
    assert await world.gateway.list_secrets() == {}


async def test_all_secrets_are_listed_over_pages_and_only_ours(world: World) -> None:
    for number in range(501):
        await world.gateway.create_secret(f"runner-{number:03}", JIT, {})
    before = len(world.sim.requests)
    assert len(await world.gateway.list_secrets()) == 501
    assert len(world.sim.requests) - before == 2


async def test_the_secret_never_shows_in_an_error(world: World) -> None:
    body = {"message": f"invalid: {JIT.reveal()}", "reason": "Invalid"}
    world.sim.faults.add(operation="create secrets", status=422, body=body)
    with pytest.raises(ClusterRefused) as caught:
        await world.gateway.create_secret("runner-1", JIT, {})
    assert JIT.reveal() not in str(caught.value)


async def test_an_ended_pod_says_why_and_keeps_its_log(world: World) -> None:
    await world.create("runner-1")
    await world.advance(10)
    await world.gateway.end_pod("runner-1", "runner_idle")
    await world.advance(5)
    pod = await world.gateway.get_pod("runner-1")
    assert pod is not None
    assert (pod.phase, pod.reason) == (PodPhase.FAILED, "DeadlineExceeded")
    assert pod.annotations[ENDING_REASON] == "runner_idle"
    report = await world.gateway.report("runner-1")
    assert report.reason == "DeadlineExceeded"
    assert report.log_tail == "sleeping\n"
    assert report.containers[0]["exit_code"] == 143
    assert {"Scheduled", "Pulled", "Started", "Killing"} <= {event["reason"] for event in report.events}


async def test_ending_or_deleting_what_is_gone_is_fine(world: World) -> None:
    await world.gateway.end_pod("gone", "runner_idle")
    await world.gateway.delete_pod("gone")
    await world.gateway.force_delete_pod("gone")
    await world.gateway.delete_secret("gone")
    assert await world.gateway.get_pod("gone") is None
    assert (await world.gateway.report("gone")).log_tail == ""


async def test_a_pod_that_never_started_is_reported_by_its_events(world: World) -> None:
    world.sim.set_board_behaviour("board-1", Behaviour(fail_to_pull="*"))
    await world.create("runner-1")
    await world.advance(10)
    report = await world.gateway.report("runner-1")
    assert report.containers[0]["reason"] == "ImagePullBackOff"
    assert "Failed" in [event["reason"] for event in report.events]
    assert report.log_tail == ""


async def test_a_report_says_what_nobody_answered_for(world: World) -> None:
    await world.create("runner-1")
    await world.advance(10)
    world.sim.faults.add(operation="(get pods/log|list events)", status=500, times=None)
    assert (await world.gateway.report("runner-1")).missing == ("log_tail", "events")
    world.sim.faults.clear()
    assert (await world.gateway.report("runner-1")).missing == ()


async def test_a_delete_takes_a_running_pod_away(world: World) -> None:
    await world.create("runner-1")
    await world.advance(10)
    await world.gateway.delete_pod("runner-1")
    await world.advance(5)
    assert await world.gateway.get_pod("runner-1") is None


async def test_force_deleting_is_the_only_way_on_a_dead_board(world: World) -> None:
    await world.create("runner-1")
    await world.advance(10)
    world.sim.kill_kubelet("board-1")
    await world.gateway.delete_pod("runner-1")
    await world.advance(600)
    pod = await world.gateway.get_pod("runner-1")
    assert pod is not None
    assert pod.deleting_since is not None
    await world.gateway.force_delete_pod("runner-1")
    assert await world.gateway.get_pod("runner-1") is None
