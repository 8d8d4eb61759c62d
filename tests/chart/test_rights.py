"""The rights that the chart grants: each is used by the program, none is missing, and a real API server agrees."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import cast

import httpx
import yaml

from controller.domain.checkup import ADVERTISING, RIGHTS, Right
from controller.domain.jobs import Entity, EntityType
from controller.domain.orders import PodOrder
from controller.gateways.kubernetes.checkup import ClusterCheckup
from controller.gateways.kubernetes.connection import connect
from controller.gateways.kubernetes.gateway import KubernetesGateway
from controller.gateways.kubernetes.pod import make_pod
from controller.ports import Secret
from controller.reconcile.advertise import withdraw_slots
from controller.simulators.cluster import ClusterSimulator, Sleeper
from controller.simulators.cluster.access import Rule
from hack.cluster.client import Cluster
from tests.chart.helm import CHART, NAMESPACE, render, rules_of, run, values
from tests.clocks import ManualClock
from tests.contract.cluster.servers import client_of
from tests.serving import serving
from tests.waiting import until

RUNNERS = f"runners-{uuid.uuid4().hex[:8]}"
LABEL = "riseproject.dev/board"
IMAGE = "registry.example/runner:1"
ADVERTISE = {"config": {"boards": {"advertise": True}, "kubernetes": {"namespace": RUNNERS}}}


def an_order(name: str) -> PodOrder:
    return PodOrder(
        name=name,
        instance="prod",
        image=IMAGE,
        pool="rv1",
        board="rv1",
        entity=Entity(1, "acme", EntityType.ORGANIZATION),
        app_id="111",
        installation_id=5,
        labels=("riscv",),
    )


@asynccontextmanager
async def gateway_to(kubeconfig: Path, clock: ManualClock) -> AsyncIterator[KubernetesGateway]:
    async with (
        await connect(kubeconfig) as client,
        KubernetesGateway(
            client,
            RUNNERS,
            "riseproject.com/runner",
            LABEL,
            "prod",
            clock,
            on_change=lambda: None,
            rng=random.Random(4),
        ) as gateway,
    ):
        yield gateway


async def call_everything(gateway: KubernetesGateway) -> None:
    """Every call there is, with every request that it may make."""
    await gateway.synced()
    await gateway.nodes_synced()
    await gateway.provision_runner(an_order("runner-1"), Secret("config"))
    await gateway.create_secret("runner-1", Secret("config"), {})  # is there: it is patched
    created = await gateway.create_pod(make_pod(an_order("runner-1")))  # is there: it is asked for
    await gateway.own_secret("runner-1", created.uid)
    await gateway.get_pod("runner-1")
    await gateway.report("runner-1")
    await gateway.end_pod("runner-1", "runner_idle")
    await gateway.delete_pod("runner-1")
    await gateway.force_delete_pod("runner-1")
    assert await gateway.list_secrets() is not None
    await gateway.delete_secret("runner-1")
    await gateway.offer_slot("board-1")
    await gateway.withdraw_slot("board-1")


class Noting:
    """A gateway of which it is noted what is called."""

    def __init__(self, gateway: KubernetesGateway) -> None:
        self._gateway = gateway
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> object:
        self.called.add(name)
        return getattr(self._gateway, name)


async def test_what_is_granted_is_exactly_what_the_program_does(tmp_path: Path) -> None:
    clock = ManualClock()
    sim = ClusterSimulator(clock, random.Random(3), token="token")
    sim.programs[IMAGE] = Sleeper(timedelta(minutes=5))
    sim.add_namespace(RUNNERS)
    sim.add_board("board-1", {LABEL: "rv1"}, slots=0)
    async with serving(sim.app) as url, sim.running():
        file = tmp_path / "kubeconfig"
        file.write_text(sim.kubeconfig(url), encoding="utf-8")
        async with gateway_to(file, clock) as gateway:
            noting = Noting(gateway)
            await call_everything(cast(KubernetesGateway, noting))
    assert noting.called == {
        name
        for name, method in vars(KubernetesGateway).items()
        if not name.startswith("_") and asyncio.iscoroutinefunction(method)
    }
    rendered = render(ADVERTISE)
    assert used_in(sim) == rules_of(rendered, "Role", RUNNERS) | rules_of(rendered, "ClusterRole")


async def test_slots_are_withdrawn_with_exactly_the_rights_of_the_hook(tmp_path: Path) -> None:
    (role,) = [each for each in render(ADVERTISE).all("ClusterRole") if "annotations" in each["metadata"]]
    granted = {
        (verb, resource) for rule in role["rules"] for verb in rule["verbs"] for resource in rule["resources"]
    }
    clock = ManualClock()
    sim = ClusterSimulator(clock, random.Random(3), token="token")
    sim.add_account("withdraw", "withdraw", [Rule((verb,), (resource,)) for verb, resource in granted])
    sim.add_namespace(RUNNERS)
    sim.add_board("board-1", {LABEL: "rv1"}, slots=0)
    file = tmp_path / "kubeconfig"
    async with serving(sim.app) as url, sim.running():
        file.write_text(sim.kubeconfig(url), encoding="utf-8")
        async with gateway_to(file, clock) as gateway:
            await gateway.offer_slot("board-1")
        sim.requests.clear()
        file.write_text(sim.kubeconfig(url).replace("token: token", "token: withdraw"), encoding="utf-8")
        async with gateway_to(file, clock) as gateway:
            await asyncio.wait_for(gateway.nodes_synced(), 60)
            assert await withdraw_slots(gateway, "prod") == ("board-1",)

            # The gateway follows pods too, which are nothing to the hook and refused. It opens its watch of nodes when
            # it has the list, which is all that withdrawing waits for.
            async def all_used() -> bool:
                return used_in(sim, 200) >= granted

            await until(all_used)
            assert used_in(sim, 200) == granted


def test_the_doctor_looks_for_exactly_the_rights_of_the_chart() -> None:
    rendered = render(ADVERTISE)
    looked_for = [*RIGHTS, ADVERTISING]
    for kind, namespace, namespaced in (("Role", RUNNERS, True), ("ClusterRole", None, False)):
        named = {pair(right) for right in looked_for if right.namespaced is namespaced}
        assert named == rules_of(rendered, kind, namespace)


def pair(right: Right) -> tuple[str, str]:
    verb, _, resource = str(right).partition(" ")
    return verb, resource


async def test_in_its_own_namespace_only_the_doctor_looks_around(tmp_path: Path) -> None:
    sim = ClusterSimulator(ManualClock(), random.Random(3), token="token")
    sim.add_namespace(NAMESPACE)
    async with serving(sim.app) as url, sim.running():
        file = tmp_path / "kubeconfig"
        file.write_text(sim.kubeconfig(url), encoding="utf-8")
        async with await connect(file) as client:
            await ClusterCheckup(client, RUNNERS, "riseproject.com/runner").seats(NAMESPACE, "boards", LABEL)
    assert used_in(sim) == rules_of(render(), "Role", NAMESPACE)


def used_in(sim: ClusterSimulator, status: int | None = None) -> set[tuple[str, str]]:
    """What was asked of the API server, or answered with this status: verb and resource."""
    seen = [each for each in sim.requests if status in (None, each.status)]
    return {(verb, resource) for verb, _, resource in (each.operation.partition(" ") for each in seen)}


async def test_the_service_account_can_do_all_that_and_read_no_secret(
    cluster: Cluster, tmp_path: Path
) -> None:
    release = "rights"
    file = tmp_path / "values.yaml"
    file.write_text(values(ADVERTISE), encoding="utf-8")
    where = ["--namespace", NAMESPACE, "--create-namespace"]
    code, said = run(
        "install", release, str(CHART), *where, "--values", str(file), cluster=cluster.kubeconfig
    )
    assert code == 0, said
    async with client_of(cluster.kubeconfig) as admin:
        try:
            kubeconfig = tmp_path / "controller"
            kubeconfig.write_text(
                await account_of(admin, cluster, f"{release}-switchboard"), encoding="utf-8"
            )
            node = {"metadata": {"name": "board-1", "labels": {LABEL: "rv1"}}}
            assert (await admin.post("/api/v1/nodes", json=node)).status_code in (201, 409)
            await until(lambda: ready_for_pods(admin))
            async with gateway_to(kubeconfig, ManualClock()) as gateway:
                await asyncio.wait_for(call_everything(gateway), 60)
                await withdrawn(gateway)
            async with client_of(kubeconfig) as controller:
                assert await allowed(controller, "list", "secrets")
                assert not await allowed(controller, "get", "secrets")
                assert not await allowed(controller, "list", "secrets", NAMESPACE)
                assert not await allowed(controller, "delete", "nodes", "")
        finally:
            await admin.delete("/api/v1/nodes/board-1")
            await admin.delete(f"/api/v1/namespaces/{RUNNERS}")
            run("uninstall", release, "--namespace", NAMESPACE, "--no-hooks", cluster=cluster.kubeconfig)


async def account_of(admin: httpx.AsyncClient, cluster: Cluster, name: str) -> str:
    """A kubeconfig with a token of the service account."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{name}/token"
    token = (await admin.post(path, json={"spec": {}})).raise_for_status().json()["status"]["token"]
    content = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    content["users"][0]["user"] = {"token": token}
    return yaml.safe_dump(content)


async def ready_for_pods(admin: httpx.AsyncClient) -> bool:
    answer = await admin.get(f"/api/v1/namespaces/{RUNNERS}/serviceaccounts/default")
    return answer.status_code == 200


async def withdrawn(gateway: KubernetesGateway) -> None:
    """A real API server takes the mark with which the slot was offered, and lets it go again."""
    await gateway.offer_slot("board-1")
    await until(lambda: _is(gateway, 1, "prod"))
    await gateway.withdraw_slot("board-1")
    await until(lambda: _is(gateway, 0, None))


async def _is(gateway: KubernetesGateway, capacity: int, by: str | None) -> bool:
    view = gateway.nodes()
    node = getattr(view, "nodes", {}).get("board-1")
    return node is not None and (node.capacity, node.advertised_by) == (capacity, by)


async def allowed(controller: httpx.AsyncClient, verb: str, resource: str, namespace: str = RUNNERS) -> bool:
    """What the API server says of the account's own rights."""
    attributes = {"verb": verb, "resource": resource, "namespace": namespace}
    body = {"spec": {"resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await controller.post(path, json=body)
    return bool(answer.raise_for_status().json()["status"]["allowed"])
