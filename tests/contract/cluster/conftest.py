"""Where the suite is run: `api` is an API server, once the simulated one and once a real kube-apiserver.

`living_api` has controllers behind it too. `cluster` is the simulated one with boards and a clock.
"""

import random
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

import httpx
import pytest

from controller.simulators.cluster import ClusterSimulator
from hack.cluster.client import Cluster as RealCluster
from hack.cluster.client import a_cluster, cannot_start
from tests.clocks import ManualClock
from tests.clusters import leave_out
from tests.contract.cluster.objects import Json
from tests.contract.cluster.servers import Real, Server, Simulated, client_of
from tests.serving import serving
from tests.waiting import until

TOKEN = "contract-token"


@dataclass(frozen=True, slots=True)
class Api:
    """An API server, and a namespace of it that no other test uses."""

    client: httpx.AsyncClient
    namespace: str
    server: Server

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

    async def limited(self, verbs: Sequence[str], resources: Sequence[str]) -> dict[str, str]:
        """The headers of someone who may do only this in the namespace."""
        return {"authorization": f"Bearer {await self.server.token(self.namespace, verbs, resources)}"}

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
async def simulated_api(sim: ClusterSimulator, url: str) -> AsyncIterator[Api]:
    """The simulated API server without anything behind it."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    sim.add_namespace(namespace)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=20) as client:
        yield Api(client, namespace, Simulated(sim))


@pytest.fixture
async def cluster(
    sim: ClusterSimulator, clock: ManualClock, simulated_api: Api, url: str
) -> AsyncIterator[Cluster]:
    async with sim.running():
        yield Cluster(sim, clock, simulated_api, url)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[RealCluster]:
    """A real API server and the controllers behind it, without a scheduler and nodes."""
    missing = cannot_start(boards=False, kwok=False)
    if missing is not None:
        leave_out(missing)
    with a_cluster(scheduler=False) as cluster:
        yield cluster


@pytest.fixture
async def real_api(control_plane: RealCluster) -> AsyncIterator[Api]:
    """A namespace of the real API server."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    async with client_of(control_plane.kubeconfig) as client:
        body = {"metadata": {"name": namespace}}
        (await client.post("/api/v1/namespaces", json=body)).raise_for_status()
        api = Api(client, namespace, Real(control_plane, client))

        async def has_account() -> bool:
            return await api.get("serviceaccounts", "default") is not None

        await until(has_account)  # no pod is accepted before
        yield api
        await client.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture(params=["simulated", "real"])
def api(request: pytest.FixtureRequest) -> Api:
    """Both API servers, one after the other."""
    found: Api = request.getfixturevalue(f"{request.param}_api")
    return found


@pytest.fixture(params=["simulated", "real"])
def living_api(request: pytest.FixtureRequest) -> Api:
    """Both, with their controllers at work."""
    if request.param == "real":
        return request.getfixturevalue("real_api")  # type: ignore[no-any-return]
    running: Cluster = request.getfixturevalue("cluster")
    return running.api
