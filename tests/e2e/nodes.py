"""Nodes without a machine: kwok plays their kubelet, or nobody does."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hack.cluster.boards import BOARD_LABEL, RESOURCE
from hack.cluster.client import Cluster
from hack.cluster.kwok import ANNOTATION, FAKE
from tests.contract.cluster.servers import client_of
from tests.e2e.systems import Json

STATUS = {"cpu": "8", "memory": "16Gi", "pods": "10", RESOURCE: "1"}


def make_node(name: str, board: str, *, alive: bool = True, cordoned: bool = False) -> Json:
    """A node that offers one slot; without kwok it is not Ready."""
    notes = {ANNOTATION: FAKE} if alive else {}
    return {
        "metadata": {
            "name": name,
            "labels": {BOARD_LABEL: board, "kubernetes.io/hostname": name},
            "annotations": notes,
        },
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "capacity": STATUS,
            "allocatable": STATUS,
            "conditions": [{"type": "Ready", "status": "True" if alive else "False", "reason": "Test"}],
        },
    }


async def boards_of(cluster: Cluster, board: str) -> list[str]:
    """The names of the nodes that carry this board label."""
    async with client_of(cluster.kubeconfig) as client:
        answer = await client.get("/api/v1/nodes", params={"labelSelector": f"{BOARD_LABEL}={board}"})
        return [node["metadata"]["name"] for node in answer.raise_for_status().json()["items"]]


@asynccontextmanager
async def nodes(
    cluster: Cluster, names: Sequence[str], board: str, *, alive: bool = True, cordoned: bool = False
) -> AsyncIterator[None]:
    """Equal nodes for the length of the block; to be entered before the system whose pods they take."""
    async with client_of(cluster.kubeconfig) as client:
        for name in names:
            node = make_node(name, board, alive=alive, cordoned=cordoned)
            (await client.post("/api/v1/nodes", json=node)).raise_for_status()
        try:
            yield
        finally:
            for name in names:
                await client.delete(f"/api/v1/nodes/{name}")
