"""The simulator's own means: faults, the log of requests, and the remote control."""

import asyncio
import json

import httpx
import pytest
import yaml

from controller.simulators.cluster import ClusterSimulator
from tests.contract.cluster.conftest import TOKEN, Api, Cluster
from tests.contract.cluster.objects import BOARD, Json, a_pod, a_secret


@pytest.fixture
def api(simulated_api: Api) -> Api:
    """Only the simulator has these means."""
    return simulated_api


async def post(cluster: Cluster, command: str, **arguments: object) -> Json:
    answer = await cluster.api.client.post(f"/_sim/{command}", json=arguments)
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    return body


async def test_a_request_fails_as_often_as_it_should(api: Api, sim: ClusterSimulator) -> None:
    sim.faults.add(operation="create pods", status=500, times=2)
    answers = [await api.client.post(api.path("pods"), json=a_pod("one")) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [500, 500, 201]
    assert sim.requests.times("create pods") == 3
    assert sim.requests.times("create pods", status=500) == 2


@pytest.mark.parametrize(("when", "there"), [("before", False), ("after", True)])
async def test_a_dropped_answer_has_its_effect_or_not(
    api: Api, sim: ClusterSimulator, when: str, there: bool
) -> None:
    sim.faults.add(operation="create secrets", drop=when)
    with pytest.raises(httpx.RemoteProtocolError):
        await api.client.post(api.path("secrets"), json=a_secret("one"))
    assert (await api.get("secrets", "one") is not None) is there


async def test_a_request_is_held_until_it_is_released(api: Api, sim: ClusterSimulator) -> None:
    rule = sim.faults.add(operation="patch pods", hold="before")
    await api.create("pods", a_pod("one"))
    patching = asyncio.create_task(api.patch("pods", "one", {"metadata": {"labels": {"a": "b"}}}))
    await rule.wait_held()
    assert (await api.get("pods", "one") or {})["metadata"].get("labels") in (None, {})
    sim.faults.release(rule.name)
    assert (await patching).json()["metadata"]["labels"] == {"a": "b"}


async def test_bookmarks_are_sent_when_told(api: Api, sim: ClusterSimulator) -> None:
    query = {"watch": "true", "allowWatchBookmarks": "true"}
    async with api.client.stream("GET", api.path("pods"), params=query) as answer:
        await sim.settle()
        sim.send_bookmarks()
        assert json.loads(await anext(answer.aiter_lines()))["type"] == "BOOKMARK"


async def test_a_dropped_watch_breaks_in_the_middle(api: Api, sim: ClusterSimulator) -> None:
    async with api.client.stream("GET", api.path("pods"), params={"watch": "true"}) as answer:
        sim.drop_watches()
        with pytest.raises(httpx.RemoteProtocolError):
            await answer.aread()
    assert sim.open_watches == 0


async def test_another_process_can_drive_the_cluster(cluster: Cluster) -> None:
    await post(cluster, "add_board", name="board-1", labels=BOARD, slots=2)
    await post(cluster, "cordon", name="board-1")
    assert cluster.sim.nodes()[0]["spec"]["unschedulable"] is True
    await post(cluster, "behaviour", name="board-1", pull_time=30, crash=3)
    name = (await post(cluster, "faults", operation="list pods", status=503))["name"]
    assert (await cluster.api.client.get(cluster.api.path("pods"))).status_code == 503
    assert await post(cluster, "faults/state", name=name) == {"hits": 1, "held": False}
    seen = (await cluster.api.client.get("/_sim/requests")).json()["requests"]
    assert seen[-1]["operation"] == "list pods"
    await post(cluster, "remove_board", name="board-1")
    assert cluster.sim.nodes() == []


@pytest.mark.parametrize(
    ("command", "arguments", "status"),
    [
        ("fly", {}, 404),
        ("cordon", {}, 400),
        ("cordon", {"name": "nobody"}, 400),
        ("behaviour", {"name": "x", "y": 1}, 400),
    ],
)
async def test_a_wrong_command_is_refused(
    cluster: Cluster, command: str, arguments: Json, status: int
) -> None:
    assert (await cluster.api.client.post(f"/_sim/{command}", json=arguments)).status_code == status


def test_the_kubeconfig_leads_here(sim: ClusterSimulator) -> None:
    content = yaml.safe_load(sim.kubeconfig("http://127.0.0.1:1"))
    assert content["clusters"][0]["cluster"]["server"] == "http://127.0.0.1:1"
    assert content["users"][0]["user"]["token"] == TOKEN
