"""The gateway as the program uses it, connected to a simulated cluster by a kubeconfig."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from controller.domain.jobs import Entity, EntityType, normalise_labels
from controller.domain.orders import PodOrder
from controller.gateways.kubernetes import KubernetesGateway, connect
from controller.gateways.kubernetes.pod import make_pod
from controller.ports import CreatedPod, Secret
from controller.simulators.cluster import ClusterSimulator, Sleeper
from tests.clocks import ManualClock
from tests.serving import serving

IMAGE = "example.com/runner:1"
LABEL, BOARD = "riseproject.dev/board", "scw-em-rv1"
JIT = Secret("c2VjcmV0LWppdC1jb25maWc=")


@dataclass(slots=True)
class Wakes:
    """Counts how often the gateway said that something changed."""

    count: int = 0

    def __call__(self) -> None:
        self.count += 1


@dataclass(frozen=True, slots=True)
class World:
    """A cluster, and the gateway to it."""

    sim: ClusterSimulator
    clock: ManualClock
    gateway: KubernetesGateway
    wakes: Wakes = field(default_factory=Wakes)

    async def create(self, name: str, instance: str = "prod") -> CreatedPod:
        """Create a runner's Secret and pod, as provisioning does."""
        await self.gateway.create_secret(name, JIT, {})
        pod = await self.gateway.create_pod(an_order(name, instance))
        await self.gateway.own_secret(name, pod.uid)
        return pod

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(timedelta(seconds=seconds))


def an_order(name: str, instance: str = "prod") -> dict[str, object]:
    """The manifest of a runner pod."""
    order = PodOrder(
        name=name,
        instance=instance,
        image=IMAGE,
        pool=BOARD,
        board=BOARD,
        entity=Entity(1001, "acme", EntityType.ORGANIZATION),
        app_id="111",
        installation_id=5,
        labels=normalise_labels(["ubuntu-24.04-riscv"]),
    )
    return make_pod(order)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock, wakes = ManualClock(), Wakes()
    sim = ClusterSimulator(clock, random.Random(3), token="integration-token")
    sim.programs[IMAGE] = Sleeper(timedelta(minutes=5))
    sim.add_board("board-1", {LABEL: BOARD})
    async with serving(sim.app) as url, sim.running():
        file = tmp_path / "kubeconfig"
        file.write_text(sim.kubeconfig(url))
        async with (
            await connect(file) as client,
            KubernetesGateway(
                client,
                "default",
                "riseproject.com/runner",
                LABEL,
                "prod",
                clock,
                on_change=wakes,
                rng=random.Random(4),
            ) as gateway,
        ):
            await gateway.synced()
            await sim.settle()
            yield World(sim, clock, gateway, wakes)
