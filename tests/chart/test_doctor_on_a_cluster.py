"""`switchboard doctor` as the chart installs it, on a real API server: what only a cluster can say is wrong."""

import random
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from controller.app import World
from controller.doctor import run_doctor
from controller.gateways.clock import SystemClock
from controller.settings import Settings
from hack.cluster.client import Cluster
from tests.chart.helm import CHART, Json, run, values
from tests.contract.cluster.servers import client_of
from tests.integration.system.test_doctor import ADMIN, Visit
from tests.systems import settings_for
from tests.waiting import until
from tests.worlds import a_github

RELEASE = "checked"
LABEL, RESOURCE = "riseproject.dev/board", "riseproject.com/runner"
POOL = {"name": "rv1", "labels": ["riscv"], "image": "registry.example/runner:1"}
READY = [{"type": "Ready", "status": "True", "reason": "Test"}]
MERGE = {"content-type": "application/merge-patch+json"}


@dataclass(frozen=True, slots=True)
class Installed:
    """A release whose doctor may be asked; `admin` breaks what it looks at."""

    admin: httpx.AsyncClient
    settings: Settings
    kubeconfig: Path
    place: str  # the release's namespace

    @property
    def runners(self) -> str:
        """The namespace of runner pods."""
        return self.settings.file.kubernetes.namespace

    async def visit(self) -> Visit:
        """Have the doctor look, with the rights of the release's ServiceAccount."""
        lines: list[str] = []
        world = World(SystemClock(), random.Random(1), self.kubeconfig)
        code = await run_doctor(self.settings, world, lines.append)
        return Visit(code, lines)

    async def patch(self, path: str, body: Any) -> None:
        """Change something as the administrator."""
        (await self.admin.patch(path, json=body, headers=MERGE)).raise_for_status()


@pytest.fixture
async def installed(cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[Installed]:
    """The chart, installed; one board with a slot, and one node that is none."""
    nodes = [a_node("doctor-board", {LABEL: "rv1"}, "1"), a_node("doctor-plain", {}, "0")]
    async with an_installation(cluster, database_url, tmp_path, nodes) as installed:
        yield installed


@asynccontextmanager
async def an_installation(
    cluster: Cluster, database_url: str, folder: Path, nodes: Sequence[Json], *more: Json
) -> AsyncIterator[Installed]:
    """The chart, installed with these changes of the least values, in a cluster that has these nodes."""
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(client_of(cluster.kubeconfig))
        github = await stack.enter_async_context(a_github(SystemClock()))
        for node in nodes:
            (await admin.post("/api/v1/nodes", json=node)).raise_for_status()
            stack.push_async_callback(admin.delete, f"/api/v1/nodes/{node['metadata']['name']}")
        place = f"doctor-{uuid.uuid4().hex[:8]}"
        runners = f"{place}-runners"
        file = folder / "values.yaml"
        file.write_text(values({"config": {"kubernetes": {"namespace": runners}}}, *more), encoding="utf-8")
        where = ["--namespace", place, "--create-namespace"]
        code, said = run(
            "install", RELEASE, str(CHART), *where, "--values", str(file), cluster=cluster.kubeconfig
        )
        assert code == 0, said
        stack.push_async_callback(admin.delete, f"/api/v1/namespaces/{runners}")  # it outlives the release
        stack.callback(run, "uninstall", RELEASE, "--namespace", place, cluster=cluster.kubeconfig)
        config = {"kubernetes": {"namespace": runners}, "webhook": "pull"}
        settings = settings_for(github, database_url, [POOL], config).model_copy(
            update={"admin_token": ADMIN, "release": f"{place}/{RELEASE}"}
        )
        kubeconfig = folder / "doctor-kubeconfig"
        kubeconfig.write_text(await account_of(admin, cluster, place), encoding="utf-8")
        await until(lambda: answers(admin, f"/api/v1/namespaces/{runners}/serviceaccounts/default"))
        yield Installed(admin, settings, kubeconfig, place)


def a_node(
    name: str, labels: Mapping[str, str], slots: str, annotations: Mapping[str, str] | None = None
) -> Json:
    offered = {"cpu": "4", "memory": "8Gi", "pods": "10", RESOURCE: slots}
    status = {"capacity": offered, "allocatable": offered, "conditions": READY}
    metadata = {"name": name, "labels": dict(labels), "annotations": dict(annotations or {})}
    return {"metadata": metadata, "status": status}


async def account_of(admin: httpx.AsyncClient, cluster: Cluster, place: str) -> str:
    path = f"/api/v1/namespaces/{place}/serviceaccounts/{RELEASE}-switchboard/token"
    token = (await admin.post(path, json={"spec": {}})).raise_for_status().json()["status"]["token"]
    content = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    content["users"][0]["user"] = {"token": token}
    return yaml.safe_dump(content)


async def answers(admin: httpx.AsyncClient, path: str) -> bool:
    return (await admin.get(path)).status_code == 200


def faults(seen: Visit) -> list[str]:
    """What is wrong, but for the board itself: nobody plays its kubelet, so it is given up after some seconds."""
    found = [line for line in seen.lines if line.startswith("FAULT")]
    return [line for line in found if "none of its 1 boards can be used now" not in line]


async def test_the_rights_of_the_chart_are_enough_and_nothing_is_wrong(installed: Installed) -> None:
    seen = await installed.visit()
    assert faults(seen) == []
    assert seen.about("rbac: ").startswith("ok")
    assert seen.about("pods: pool rv1").startswith("ok")
    assert not [line for line in seen.lines if "placement" in line]  # none of its pods has a node yet


async def test_a_pod_security_level_that_refuses_runner_pods_is_found_and_mended(
    installed: Installed,
) -> None:
    path, level = f"/api/v1/namespaces/{installed.runners}", "pod-security.kubernetes.io/enforce"
    await installed.patch(path, {"metadata": {"labels": {level: "baseline"}}})
    seen = await installed.visit()
    assert seen.code == 1
    finding = seen.about("violates PodSecurity")
    assert finding.startswith("FAULT  pods: pool rv1")
    assert f"`kubectl label --overwrite namespace {installed.runners} {level}=privileged`" in finding
    await installed.patch(path, {"metadata": {"labels": {level: "privileged"}}})
    assert faults(await installed.visit()) == []


async def test_a_verb_that_is_taken_away_is_found(installed: Installed) -> None:
    namespace = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{installed.runners}"
    role = f"{namespace}/roles/{RELEASE}-switchboard"
    rules = (await installed.admin.get(role)).raise_for_status().json()["rules"]
    await installed.patch(role, {"rules": [rule for rule in rules if rule["resources"] != ["events"]]})

    async def is_missed() -> bool:  # the API server's view of roles follows after a moment
        seen = await installed.visit()
        found = [line for line in seen.lines if f"may not list events in {installed.runners}" in line]
        return seen.code == 1 and f"kubectl -n {installed.runners} edit $(" in "".join(found)

    await until(is_missed)


async def test_a_node_without_label_or_slot_is_found(installed: Installed) -> None:
    path = "/api/v1/nodes/doctor-board"
    await installed.patch(f"{path}/status", {"status": {"allocatable": {RESOURCE: None}}})
    bare = await installed.visit()
    assert bare.code == 1
    assert "config.boards.advertise=true" in bare.about(f"none of its 1 nodes offers {RESOURCE}")
    await installed.patch(path, {"metadata": {"labels": {LABEL: None}}})
    none = await installed.visit()
    assert none.code == 1
    assert f"kubectl label node NODE {LABEL}=rv1" in none.about(f"no node matches {LABEL}=rv1")


async def test_a_controller_on_a_board_is_found(installed: Installed) -> None:
    for component, node in (("webhook", "doctor-plain"), ("controller", "doctor-board")):
        await bind(installed, component, node)
    # Nobody plays its kubelet: on a busy machine it has been given up by now, and would be no place to move to.
    await installed.patch("/api/v1/nodes/doctor-plain/status", {"status": {"conditions": READY}})
    seen = await installed.visit()
    assert seen.code == 1
    finding = seen.about("runs on doctor-board, a board")
    assert finding.startswith(f"FAULT  placement: {RELEASE}-switchboard-controller-")
    assert f"`kubectl -n {installed.place} rollout restart deployment,statefulset -l " in finding
    assert "webhook" not in finding


async def bind(installed: Installed, component: str, node: str) -> None:
    """Bind the component's pods to a node, as a scheduler would that nobody told about boards."""
    admin, pods = installed.admin, f"/api/v1/namespaces/{installed.place}/pods"
    query = {"labelSelector": f"app.kubernetes.io/component={component}"}

    async def there() -> list[str]:
        items = (await admin.get(pods, params=query)).raise_for_status().json()["items"]
        return [pod["metadata"]["name"] for pod in items]

    async def any_there() -> bool:
        return bool(await there())

    await until(any_there)
    for name in await there():
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        (await admin.post(f"{pods}/{name}/binding", json=binding)).raise_for_status()
