"""Scheduler and kubelets: what becomes of a pod on a board."""

from datetime import timedelta
from typing import Any

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


async def run_pod(cluster: Cluster, name: str = "one", after: float = 10, **fields: Any) -> Json:
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


async def test_a_pod_that_fits_nowhere_waits_and_is_told_why(board: Cluster) -> None:
    await run_pod(board, "one")
    waiting = await run_pod(board, "two")
    assert waiting["status"]["phase"] == "Pending"
    assert "startTime" not in waiting["status"]
    condition = waiting["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient riseproject.com/runner.")


async def test_a_waiting_pod_gets_the_slot_that_another_leaves(board: Cluster) -> None:
    await run_pod(board, "one")
    await run_pod(board, "two", after=65)
    assert (await seen(board, "two"))["spec"]["nodeName"] == "board-1"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"nodeSelector": {"riseproject.dev/board": "rv2"}}, "didn't match Pod's node affinity/selector"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {"key": "metadata.name", "operator": "NotIn", "values": ["board-1"]}
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            "didn't match Pod's node affinity/selector",
        ),
    ],
)
async def test_selectors_and_affinity_keep_a_pod_away(board: Cluster, spec: Json, why: str) -> None:
    await board.api.create("pods", a_pod("one", **spec))
    await board.sim.settle()
    assert why in (await seen(board, "one"))["status"]["conditions"][0]["message"]


async def test_a_cordoned_board_takes_no_pods_until_it_is_uncordoned(board: Cluster) -> None:
    board.sim.cordon("board-1")
    pod = await run_pod(board)
    assert "node(s) were unschedulable" in pod["status"]["conditions"][0]["message"]
    board.sim.uncordon("board-1")
    await board.clock.advance(seconds(5))
    assert (await seen(board, "one"))["status"]["phase"] == "Running"


async def test_a_taint_keeps_pods_off_unless_they_tolerate_it(board: Cluster) -> None:
    board.sim.add_board(
        "board-2", {"kind": "odd"}, taints=[{"key": "odd", "value": "yes", "effect": "NoSchedule"}]
    )
    odd: Json = {"nodeSelector": {"kind": "odd"}}
    await board.api.create("pods", a_pod("one", **odd))
    tolerations = [{"key": "odd", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]
    await board.api.create("pods", a_pod("two", tolerations=tolerations, **odd))
    await board.sim.settle()
    assert "untolerated taint {odd: yes}" in (await seen(board, "one"))["status"]["conditions"][0]["message"]
    assert (await seen(board, "two"))["spec"]["nodeName"] == "board-2"


async def test_a_resource_written_into_the_capacity_is_offered(board: Cluster) -> None:
    board.sim.add_board("board-2", {"kind": "bare"}, slots=0)
    await board.api.create("pods", a_pod("one", slots=1, nodeSelector={"kind": "bare"}))
    patch = [{"op": "add", "path": "/status/capacity/riseproject.com~1runner", "value": "1"}]
    answer = await board.api.client.patch(
        "/api/v1/nodes/board-2/status", json=patch, headers={"content-type": "application/json-patch+json"}
    )
    assert answer.status_code == 200
    await board.sim.settle()
    assert (await seen(board, "one"))["spec"]["nodeName"] == "board-2"


async def test_a_lowered_deadline_ends_a_running_pod_and_keeps_its_log(board: Cluster) -> None:
    await run_pod(board, activeDeadlineSeconds=3600)
    assert (await board.api.patch("pods", "one", {"spec": {"activeDeadlineSeconds": 1}})).status_code == 200
    await board.clock.advance(seconds(5))
    pod = await seen(board, "one")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert container_state(pod)["terminated"]["finishedAt"]
    assert (await board.api.client.get(board.api.path("pods", "one", "log"))).text == "sleeping\n"


async def test_a_deadline_on_a_pod_without_a_kubelet_does_nothing(board: Cluster) -> None:
    await run_pod(board, "one")
    await run_pod(board, "two")
    await board.api.patch("pods", "two", {"spec": {"activeDeadlineSeconds": 1}})
    await board.clock.advance(seconds(20))
    assert (await seen(board, "two"))["status"]["phase"] == "Pending"


async def test_a_deleted_pod_is_stopped_before_it_goes(board: Cluster) -> None:
    await run_pod(board)
    answer = await board.api.client.delete(board.api.path("pods", "one"))
    assert answer.json()["metadata"]["deletionGracePeriodSeconds"] == 30
    await board.clock.advance(seconds(5))
    assert await board.api.get("pods", "one") is None


@pytest.mark.parametrize(
    ("image", "reason"),
    [("example.com/missing:1", "ImagePullBackOff"), ("Not An Image", "InvalidImageName")],
)
async def test_an_image_that_cannot_be_had_keeps_the_container_waiting(
    board: Cluster, image: str, reason: str
) -> None:
    pod = await run_pod(board, image=image)
    assert container_state(pod)["waiting"]["reason"] == reason
    assert pod["status"]["phase"] == "Pending"
    assert pod["status"]["startTime"]


async def test_an_image_that_comes_late_is_pulled_in_the_end(board: Cluster) -> None:
    image = "example.com/late:1"
    await run_pod(board, image=image)
    board.sim.programs[image] = Sleeper(seconds(600))
    await board.clock.advance(seconds(30))
    assert (await seen(board, "one"))["status"]["phase"] == "Running"


async def test_a_board_that_cannot_pull_is_that_board_alone(board: Cluster) -> None:
    board.sim.add_board("board-2", BOARD)
    board.sim.set_board_behaviour("board-2", Behaviour(fail_to_pull="*"))
    board.sim.cordon("board-1")
    assert "waiting" in container_state(await run_pod(board, "one"))
    board.sim.uncordon("board-1")
    assert "running" in container_state(await run_pod(board, "two"))


async def test_a_missing_secret_is_a_config_error_until_it_comes(board: Cluster) -> None:
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "late", "key": "key"}}}]
    pod = await run_pod(board, env=env)
    assert container_state(pod)["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": 'secret "late" not found',
    }
    await board.api.create("secrets", a_secret("late", key="value"))
    await board.clock.advance(seconds(20))
    assert (await seen(board, "one"))["status"]["phase"] == "Running"


async def test_a_crash_is_a_failed_pod_with_its_exit_code(board: Cluster) -> None:
    board.sim.set_board_behaviour("board-1", Behaviour(crash=3))
    pod = await run_pod(board)
    assert pod["status"]["phase"] == "Failed"
    assert container_state(pod)["terminated"]["exitCode"] == 3


async def test_events_tell_the_story_of_a_pod(board: Cluster) -> None:
    pod = await run_pod(board)
    fields = f"involvedObject.kind=Pod,involvedObject.uid={pod['metadata']['uid']}"
    events = (await board.api.listed("events", fieldSelector=fields))["items"]
    assert [event["reason"] for event in events] == ["Scheduled", "Pulling", "Pulled", "Started"]
