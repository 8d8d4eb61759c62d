"""Scheduler and kubelets: what becomes of a pod on a board."""

from datetime import timedelta

import pytest

from controller.simulators.cluster import Behaviour, Sleeper
from tests.contract.cluster.conftest import Cluster
from tests.contract.cluster.objects import BOARD, IMAGE, Json, a_pod, a_secret, container_state


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@pytest.fixture
def board(cluster: Cluster) -> Cluster:
    """A cluster with one board, whose image runs for a minute."""
    cluster.sim.add_board("board-1", BOARD)
    cluster.sim.programs[IMAGE] = Sleeper(seconds(60))
    return cluster


async def seen(cluster: Cluster, name: str) -> Json:
    pod = await cluster.api.get("pods", name)
    assert pod is not None
    return pod


async def run_pod(cluster: Cluster, name: str = "one", after: float = 10, **fields: object) -> Json:
    await cluster.api.create("pods", a_pod(name, slots=1, nodeSelector=BOARD, **fields))
    await cluster.clock.advance(seconds(after))
    return await seen(cluster, name)


async def test_a_pod_is_placed_started_and_ends_by_itself(board: Cluster) -> None:
    running = await run_pod(board)
    assert running["spec"]["nodeName"] == "board-1"
    assert running["status"]["phase"] == "Running"
    assert running["status"]["startTime"]
    assert "running" in container_state(running)
    await board.clock.advance(seconds(60))
    ended = await seen(board, "one")
    assert ended["status"]["phase"] == "Succeeded"
    assert container_state(ended)["terminated"]["exitCode"] == 0
    log = await board.api.client.get(board.api.path("pods", "one", "log"))
    assert log.text == "sleeping\n"
