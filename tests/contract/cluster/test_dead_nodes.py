"""Boards that die, come back, or are taken away."""

from datetime import timedelta

import pytest

from controller.simulators.cluster import Sleeper
from tests.contract.cluster.conftest import Cluster
from tests.contract.cluster.objects import BOARD, IMAGE, Json, a_pod, container_state

UNREACHABLE = "node.kubernetes.io/unreachable"


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@pytest.fixture
async def board(cluster: Cluster) -> Cluster:
    """A board with a running pod."""
    cluster.sim.add_board("board-1", BOARD)
    cluster.sim.programs[IMAGE] = Sleeper(seconds(3600))
    await cluster.api.create("pods", a_pod("one", slots=1, nodeSelector=BOARD))
    await cluster.clock.advance(seconds(10))
    return cluster


async def node(cluster: Cluster) -> Json:
    found: Json = (await cluster.api.client.get("/api/v1/nodes/board-1")).raise_for_status().json()
    return found


def ready(node: Json) -> str:
    return str(next(each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"))


def effects(node: Json) -> set[str]:
    return {each["effect"] for each in node["spec"].get("taints", ()) if each["key"] == UNREACHABLE}


async def test_a_dead_kubelet_is_noticed_after_forty_seconds(board: Cluster) -> None:
    board.sim.kill_kubelet("board-1")
    await board.clock.advance(seconds(39))
    assert (ready(await node(board)), effects(await node(board))) == ("True", set())
    await board.clock.advance(seconds(1))
    assert (ready(await node(board)), effects(await node(board))) == ("Unknown", {"NoSchedule", "NoExecute"})
    pod = await board.api.get("pods", "one")
    assert pod is not None
    assert pod["status"]["phase"] == "Running"


async def test_a_revived_kubelet_takes_the_taints_away(board: Cluster) -> None:
    board.sim.kill_kubelet("board-1")
    await board.clock.advance(seconds(60))
    board.sim.revive_kubelet("board-1")
    await board.clock.advance(seconds(60))
    assert (ready(await node(board)), effects(await node(board))) == ("True", set())


async def test_a_delete_on_a_dead_board_hangs_until_it_is_forced(board: Cluster) -> None:
    board.sim.kill_kubelet("board-1")
    await board.api.client.delete(board.api.path("pods", "one"))
    await board.clock.advance(seconds(3000))
    pod = await board.api.get("pods", "one")
    assert pod is not None
    assert pod["metadata"]["deletionTimestamp"]
    await board.api.client.delete(board.api.path("pods", "one"), params={"gracePeriodSeconds": 0})
    assert await board.api.get("pods", "one") is None


async def test_a_pod_on_a_dead_board_is_evicted_after_its_toleration(board: Cluster) -> None:
    board.sim.kill_kubelet("board-1")
    await board.clock.advance(seconds(339))
    pod = await board.api.get("pods", "one")
    assert pod is not None
    assert "deletionTimestamp" not in pod["metadata"]
    await board.clock.advance(seconds(1))
    pod = await board.api.get("pods", "one")
    assert pod is not None
    assert "deletionTimestamp" in pod["metadata"]


async def test_a_delete_is_carried_out_when_the_kubelet_is_back(board: Cluster) -> None:
    board.sim.kill_kubelet("board-1")
    await board.api.client.delete(board.api.path("pods", "one"))
    board.sim.revive_kubelet("board-1")
    await board.clock.advance(seconds(5))
    assert await board.api.get("pods", "one") is None


async def test_a_pod_given_to_a_dead_board_is_accepted_by_no_one(board: Cluster) -> None:
    board.sim.add_board("board-2", {"kind": "other"})
    board.sim.kill_kubelet("board-2")
    await board.api.create("pods", a_pod("two", nodeSelector={"kind": "other"}))
    await board.clock.advance(seconds(30))
    pod = await board.api.get("pods", "two")
    assert pod is not None
    assert pod["spec"]["nodeName"] == "board-2"
    assert "startTime" not in pod["status"]


async def test_containers_of_a_board_that_lost_power_are_reported_lost(board: Cluster) -> None:
    board.sim.cut_power("board-1")
    await board.clock.advance(seconds(60))
    board.sim.revive_kubelet("board-1")
    await board.clock.advance(seconds(1))
    pod = await board.api.get("pods", "one")
    assert pod is not None
    assert pod["status"]["phase"] == "Failed"
    assert container_state(pod)["terminated"]["exitCode"] == 137


async def test_the_pods_of_a_removed_board_are_collected(board: Cluster) -> None:
    board.sim.remove_board("board-1")
    await board.clock.advance(seconds(39))
    assert await board.api.get("pods", "one") is not None
    await board.clock.advance(seconds(1))
    assert await board.api.get("pods", "one") is None


async def test_the_log_of_a_dead_board_cannot_be_had(board: Cluster) -> None:
    board.sim.kill_kubelet("board-1")
    answer = await board.api.client.get(board.api.path("pods", "one", "log"))
    assert answer.status_code == 500
