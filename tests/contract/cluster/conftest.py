"""Where the suite is run: `api` is an API server, here the simulated one; `cluster` is that with boards and a clock."""

import random
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from controller.simulators.cluster import ClusterSimulator
from tests.clocks import ManualClock
from tests.contract.cluster.objects import Json
from tests.serving import serving

TOKEN = "contract-token"


@dataclass(frozen=True, slots=True)
class Api:
    """An API server, and a namespace of it that no other test uses."""

    client: httpx.AsyncClient
    namespace: str

    def path(self, *parts: str) -> str:
        """An address in the namespace."""
        return "/".join(("/api/v1/namespaces", self.namespace, *parts))

    async def create(self, plural: str, obj: Json, **query: str) -> Json:
        """Create an object, which must succeed."""
        answer = await self.client.post(self.path(plural), json=obj, params=query)
        assert answer.status_code == 201, answer.text
        created: Json = answer.json()
        return created

    async def get(self, plural: str, name: str) -> Json | None:
        """One object, or None."""
        answer = await self.client.get(self.path(plural, name))
        if answer.status_code == 404:
            return None
        found: Json = answer.raise_for_status().json()
        return found

    async def patch(self, plural: str, name: str, patch: object, kind: str = "merge") -> httpx.Response:
        """Patch an object."""
        headers = {"content-type": f"application/{kind}-patch+json"}
        return await self.client.patch(self.path(plural, name), json=patch, headers=headers)

    async def listed(self, plural: str, **query: str | int) -> Json:
        """A list, which must succeed."""
        found: Json = (await self.client.get(self.path(plural), params=query)).raise_for_status().json()
        return found


@dataclass(frozen=True, slots=True)
class Cluster:
    """The simulated cluster with its clock."""

    sim: ClusterSimulator
    clock: ManualClock
    api: Api
    url: str


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def sim(clock: ManualClock) -> ClusterSimulator:
    return ClusterSimulator(clock, random.Random(3), token=TOKEN)


@pytest.fixture
async def url(sim: ClusterSimulator) -> AsyncIterator[str]:
    async with serving(sim.app) as base_url:
        yield base_url


@pytest.fixture
async def api(sim: ClusterSimulator, url: str) -> AsyncIterator[Api]:
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    sim.add_namespace(namespace)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=20) as client:
        yield Api(client, namespace)


@pytest.fixture
async def cluster(sim: ClusterSimulator, clock: ManualClock, api: Api, url: str) -> AsyncIterator[Cluster]:
    async with sim.running():
        yield Cluster(sim, clock, api, url)
