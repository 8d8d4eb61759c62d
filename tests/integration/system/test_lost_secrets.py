"""Secrets whose pod was never made: they hold a runner's credentials, so they do not lie around."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from controller.gateways.kubernetes.pod import instance_labels
from controller.ports import Secret
from controller.simulators.cluster.objects import SECRETS
from tests.systems import System, a_pool, a_system

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}
LOST = "rise-riscv-runner-000000000"


def secrets(system: System) -> list[str]:
    return [secret["metadata"]["name"] for secret in system.cluster.store.all(SECRETS)]


async def failed(system: System) -> int:
    return (await system.statuses("workers")).get("failed", 0)


async def test_a_pod_that_is_refused_leaves_no_secret(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.faults.add(operation="create pods", status=422, times=None)
        system.queue("acme/widgets", "rv1")
        await system.turn()
        assert await failed(system)
        assert secrets(system) == []


async def test_a_secret_that_could_not_be_deleted_goes_soon_after_the_cluster_is_back(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.faults.add(operation="create pods", status=422, times=None)
        away = system.cluster.faults.add(operation="(delete|list) secrets", status=503, times=None)
        system.queue("acme/widgets", "rv1")
        await system.turn()
        left = await failed(system)
        assert len(secrets(system)) == left > 0
        system.cluster.faults.remove(away.name)
        for _ in range(8):  # two minutes: the next sweep, of a Secret whose row ended half a minute ago
            await system.step(15)
        assert secrets(system) == []


async def test_a_term_begins_with_a_sweep(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.controller.cluster.create_secret(LOST, Secret("config"), instance_labels("prod"))
        await system.clock.advance(timedelta(minutes=5))
        await system.turn()
        assert secrets(system) == []
