"""Nodes without a machine: kwok plays their kubelet, or nobody does."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx

from hack.cluster.boards import BOARD_LABEL, RESOURCE
from hack.cluster.kwok import ANNOTATION, FAKE
from tests.e2e.systems import Json

STATUS = {"cpu": "8", "memory": "16Gi", "pods": "10", RESOURCE: "1"}


def make_node(name: str, board: str, *, alive: bool = True) -> Json:
    """A node that offers one slot; without kwok it is not Ready."""
    notes = {ANNOTATION: FAKE} if alive else {}
    return {
        "metadata": {
            "name": name,
            "labels": {BOARD_LABEL: board, "kubernetes.io/hostname": name},
            "annotations": notes,
        },
        "status": {
            "capacity": STATUS,
            "allocatable": STATUS,
            "conditions": [{"type": "Ready", "status": "True" if alive else "False", "reason": "Test"}],
        },
    }


@asynccontextmanager
async def a_node(
    client: httpx.AsyncClient, name: str, board: str, *, alive: bool = True
) -> AsyncIterator[None]:
    """One node, for the length of the block."""
    async with nodes(client, [name], board, alive=alive):
        yield


@asynccontextmanager
async def nodes(
    client: httpx.AsyncClient, names: Sequence[str], board: str, *, alive: bool = True
) -> AsyncIterator[None]:
    """Many equal nodes, for the length of the block."""
    for name in names:
        (await client.post("/api/v1/nodes", json=make_node(name, board, alive=alive))).raise_for_status()
    try:
        yield
    finally:
        for name in names:
            await client.delete(f"/api/v1/nodes/{name}")
