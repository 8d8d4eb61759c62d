"""boards.advertise: slots appear on boards without a device plugin, stay there, and can be taken off again."""

from pathlib import Path
from typing import Any

import pytest

from controller.app import World, withdraw_boards
from controller.errors import ClusterError
from controller.gateways.kubernetes.parse import ADVERTISED
from controller.simulators.cluster.objects import NODES
from tests.systems import BOARD_LABEL, System, a_pool, a_system

RESOURCE = "riseproject.com/runner"


def offered(system: System) -> dict[str, tuple[str | None, str | None]]:
    """What each node's capacity and its kubelet say."""
    return {
        node["metadata"]["name"]: (
            node["status"]["capacity"].get(RESOURCE),
            node["status"]["allocatable"].get(RESOURCE),
        )
        for node in system.cluster.nodes()
    }


def change(system: System, name: str, **metadata: Any) -> None:
    def write(node: dict[str, Any]) -> None:
        node["metadata"].update(metadata)

    assert system.cluster.store.change(NODES, ("", name), write) is not None


async def test_a_bare_board_is_offered_and_runs_a_job(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}, advertise=True) as system:
        system.cluster.add_board("bare", {BOARD_LABEL: "rv1"}, slots=0)
        system.cluster.add_board("other", {}, slots=0)
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        assert offered(system) == {"bare": ("1", "1"), "other": (None, None)}
        assert system.cluster.requests.times("patch nodes/status") == 1


async def test_a_slot_that_went_away_is_offered_again(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}, advertise=True) as system:
        system.cluster.add_board("bare", {BOARD_LABEL: "rv1"}, slots=0)
        await system.turn()

        def forget(node: dict[str, Any]) -> None:
            node["status"]["capacity"][RESOURCE] = "0"

        system.cluster.store.change(NODES, ("", "bare"), forget)
        await system.turn()
        assert offered(system) == {"bare": ("1", "1")}


async def test_a_refused_patch_is_tried_again(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}, advertise=True) as system:
        system.cluster.faults.add(operation="patch nodes/status", status=503, times=1)
        system.cluster.add_board("bare", {BOARD_LABEL: "rv1"}, slots=0)
        await system.step()
        await system.step(15)
        assert offered(system) == {"bare": ("1", "1")}


async def test_a_node_that_refuses_keeps_no_other_board_from_its_slot(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}, advertise=True) as system:
        for name in ("a-first", "b-second"):
            system.cluster.add_board(name, {BOARD_LABEL: "rv1"}, slots=0)
        rule = system.cluster.faults.add(
            operation="patch nodes/status", path="a-first", status=403, times=None
        )
        await system.step()
        assert offered(system) == {"a-first": (None, None), "b-second": ("1", "1")}
        system.cluster.faults.remove(rule.name)
        await system.step()
        assert offered(system)["a-first"] == ("1", "1")
        system.cluster.faults.add(operation="patch nodes/status", path="a-first", status=403, times=None)
        with pytest.raises(ClusterError, match="a-first"):
            await withdraw_boards(system.settings, World(system.clock, kubeconfig=tmp_path / "kubeconfig"))
        await system.settle()
        assert offered(system) == {"a-first": ("1", "1"), "b-second": (None, None)}


async def test_without_the_setting_no_node_is_written(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}) as system:
        system.cluster.add_board("bare", {BOARD_LABEL: "rv1"}, slots=0)
        await system.step()
        assert system.cluster.requests.times("patch nodes/status") == 0


async def test_a_node_that_is_a_board_no_more_loses_its_slot(database_url: str, tmp_path: Path) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, advertise=True
    ) as system:
        system.cluster.add_board("bare", {BOARD_LABEL: "rv1"}, slots=0)
        await system.turn()
        change(system, "bare", labels={})
        change(system, "rv1-1", labels={})
        await system.turn()
        assert offered(system) == {"bare": (None, None), "rv1-1": ("1", "1")}


async def test_all_that_was_offered_is_withdrawn_on_request(database_url: str, tmp_path: Path) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, advertise=True
    ) as system:
        system.cluster.add_board("bare", {BOARD_LABEL: "rv1"}, slots=0)
        await system.turn()
        world = World(system.clock, kubeconfig=tmp_path / "kubeconfig")
        assert await withdraw_boards(system.settings, world) == 0
        await system.settle()
        assert offered(system) == {"bare": (None, None), "rv1-1": ("1", "1")}
        marks = [ADVERTISED in node["metadata"].get("annotations", {}) for node in system.cluster.nodes()]
        assert not any(marks)


async def test_what_another_installation_offers_stays(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}, advertise=True) as system:
        for name in ("ours", "theirs"):
            system.cluster.add_board(name, {BOARD_LABEL: "rv1"}, slots=0)
        await system.turn()
        change(system, "theirs", annotations={ADVERTISED: "staging"})
        await system.turn()
        world = World(system.clock, kubeconfig=tmp_path / "kubeconfig")
        assert await withdraw_boards(system.settings, world) == 0
        await system.settle()
        assert offered(system) == {"ours": (None, None), "theirs": ("1", "1")}
