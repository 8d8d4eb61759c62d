"""The chart on a real API server: accepted whole, installed, changed, rolled back and taken away."""

import base64
import re
import shlex
import shutil
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import yaml

from controller.decide.checkup import helm_upgrade
from hack.cluster.client import Cluster
from tests.chart.helm import (
    CHART,
    NAMESPACE,
    RELEASE,
    SCENARIOS,
    Json,
    render,
    run,
    scenario,
    template,
    values,
)
from tests.chart.objects import PLACES, place_of, teach_monitoring
from tests.chart.test_readme import README
from tests.contract.cluster.servers import client_of
from tests.waiting import until

# Pods are refused, and of what makes pods the API server warns.
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
PLACE = "installed"  # where it is installed; in NAMESPACE it is only tried
OWN_NAME = f"runners-{uuid.uuid4().hex[:8]}"
OWN = {"config": {"kubernetes": {"namespace": OWN_NAME}}}
RUNNERS = f"/api/v1/namespaces/{OWN_NAME}"
NEXT = [  # after an installation
    "kubectl label node NODE riseproject.dev/board=rv1",
    f"kubectl -n {PLACE} rollout restart deployment,statefulset -l app.kubernetes.io/instance={RELEASE}",
    f"helm test {RELEASE} -n {PLACE} --logs",
    f"kubectl -n {PLACE} port-forward service/{RELEASE}-switchboard 8080:80",
]
OWN_LIST = f"app.kubernetes.io/instance={RELEASE}"


@pytest.fixture
async def admin(cluster: Cluster) -> AsyncIterator[httpx.AsyncClient]:
    """The API server in the eyes of an administrator, who has made the namespace and knows the operator."""
    async with client_of(cluster.kubeconfig) as client:
        await teach_monitoring(client)
        for namespace in (NAMESPACE, PLACE):
            await make_namespace(client, namespace, RESTRICTED)
        yield client


async def make_namespace(client: httpx.AsyncClient, name: str, labels: dict[str, str]) -> None:
    """Another test may have made it, without the labels."""
    assert (await client.post("/api/v1/namespaces", json={"metadata": {"name": name}})).status_code in (
        201,
        409,
    )
    merge = {"content-type": "application/merge-patch+json"}
    body = {"metadata": {"labels": labels}}
    (await client.patch(f"/api/v1/namespaces/{name}", json=body, headers=merge)).raise_for_status()

    async def has_account() -> bool:
        answer = await client.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        return answer.status_code == 200

    await until(has_account)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
async def test_the_api_server_accepts_every_object(path: Path, admin: httpx.AsyncClient) -> None:
    rendered = scenario(path)
    runners = f"runners-{uuid.uuid4().hex[:8]}"
    await make_namespace(admin, runners, {})
    account = {"metadata": {"name": rendered.pod("doctor")["spec"]["serviceAccountName"]}}
    await admin.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", json=account)
    for obj in rendered.objects:
        if obj["metadata"].get("namespace", NAMESPACE) != NAMESPACE:
            obj["metadata"]["namespace"] = runners  # what is only tried has no namespace made for it
        answer = await dry_run(admin, obj)
        assert answer.status_code in (200, 201), f"{obj['kind']} {obj['metadata']['name']}: {answer.text}"
        assert "warning" not in answer.headers, answer.headers["warning"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ServiceMonitor", {"selector": {}, "endpoints": [{"port": "http", "intervall": "30s"}]}),
        ("PrometheusRule", {"groups": [{"name": "a", "rules": [{"expresion": "up == 0"}]}]}),
    ],
)
async def test_a_misspelt_field_of_the_operators_kinds_is_not_overlooked(
    kind: str, spec: Json, admin: httpx.AsyncClient
) -> None:
    obj = {"apiVersion": "monitoring.coreos.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    answer = await dry_run(admin, obj)
    assert answer.status_code >= 400, answer.text
    assert "field not declared in schema" in answer.text


async def test_what_makes_pods_that_would_be_refused_is_warned_about(admin: httpx.AsyncClient) -> None:
    database = render({"trialDatabase": {"enabled": True, "password": "x"}}).one("StatefulSet")
    assert "warning" not in (await dry_run(admin, database)).headers
    del database["spec"]["template"]["spec"]["securityContext"]
    assert "PodSecurity" in (await dry_run(admin, database)).headers["warning"]


async def dry_run(admin: httpx.AsyncClient, obj: Json) -> httpx.Response:
    """Apply on the server without keeping it; an unknown field is a mistake."""
    query = {"dryRun": "All", "fieldManager": "test", "fieldValidation": "Strict", "force": "true"}
    address = f"{place_of(obj)}/{obj['metadata']['name']}"
    headers = {"content-type": "application/apply-patch+yaml"}
    content = yaml.safe_dump(obj).encode()
    return await admin.patch(address, params=query, content=content, headers=headers)


async def test_a_release_is_installed_changed_rolled_back_and_gone(
    cluster: Cluster, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    helm = Helm(cluster, tmp_path)
    notes = helm.run("install", values(OWN)).partition("NOTES:\n")[2]
    assert commands_of(notes) == NEXT
    assert "a job is root on its board. Boards should run nothing else" in notes
    assert "Controller, receiver and trial database keep off boards." in notes
    assert "GitHub has to reach /webhook of service/boards-switchboard-webhook" in notes
    assert await deployed(admin, "controller") == 1
    # Pods are refused or let in when they are made, so those of the Deployments must have come through.
    await until(lambda: has_pods(admin, {"controller", "webhook"}))

    helm.run("upgrade", values(OWN, {"controller": {"replicas": 2}}))
    assert await deployed(admin, "controller") == 2
    notes = helm.run("upgrade", values(OWN, {"mode": "all", "keepOffBoards": False}))
    assert "keepOffBoards is off: a job can reach the controller's credentials on its node." in notes
    assert "rollout restart" not in notes  # which would move nothing
    await until(lambda: has_pods(admin, {"controller"}))

    code, said = run("rollback", RELEASE, "1", "--namespace", PLACE, cluster=cluster.kubeconfig)
    assert code == 0, said
    assert await deployed(admin, "controller") == 1
    await until(lambda: has_pods(admin, {"controller", "webhook"}))

    helm.uninstall()
    assert await namespace_stays(admin)  # the README has it deleted by hand
    (await admin.delete(RUNNERS)).raise_for_status()
    await until(lambda: nothing_left(admin))


async def test_no_change_of_values_takes_the_namespace_of_running_workers_away(
    cluster: Cluster, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    helm = Helm(cluster, tmp_path)
    elsewhere = {"config": {"kubernetes": {"namespace": f"{OWN_NAME}-new"}}}
    helm.run("install", values(OWN))
    for given in (values(OWN, {"runnerNamespace": {"create": False}}), values(OWN), values(elsewhere)):
        helm.run("upgrade", given)
        assert await namespace_stays(admin)
    code, said = run("rollback", RELEASE, "2", "--namespace", PLACE, cluster=cluster.kubeconfig)
    assert code == 0, said
    helm.uninstall()
    for path in (RUNNERS, f"{RUNNERS}-new"):
        assert await namespace_stays(admin, path)
        (await admin.delete(path)).raise_for_status()
    await until(lambda: nothing_left(admin))


async def test_a_value_is_changed_by_the_doctors_command_and_the_defaults_of_a_newer_chart_come_with_it(
    cluster: Cluster, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    shutil.copytree(CHART, older)
    defaults = yaml.safe_load((older / "values.yaml").read_text(encoding="utf-8"))
    newer_ports = defaults["networkPolicy"]["egressPorts"]
    defaults["networkPolicy"]["egressPorts"] = newer_ports[:1]
    (older / "values.yaml").write_text(yaml.safe_dump(defaults), encoding="utf-8")
    helm = Helm(cluster, tmp_path)
    helm.run("install", values(OWN, {"controller": {"replicas": 2}}), older)
    assert await egress_ports(admin) == newer_ports[:1]
    _, *command = shlex.split(helm_upgrade(f"{PLACE}/{RELEASE}").replace("CHART", str(CHART)))
    code, said = run(*command, "webhook.replicas=3", cluster=cluster.kubeconfig)
    assert code == 0, said
    assert [await deployed(admin, each) for each in ("controller", "webhook")] == [2, 3]
    assert await egress_ports(admin) == newer_ports
    helm.uninstall()
    (await admin.delete(RUNNERS)).raise_for_status()
    await until(lambda: nothing_left(admin))


async def test_a_secret_that_came_from_values_is_rotated_by_a_value_since_a_patch_does_not_last(
    cluster: Cluster, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    helm = Helm(cluster, tmp_path)
    helm.run("install", values(OWN))
    path = f"/api/v1/namespaces/{PLACE}/secrets/{RELEASE}-switchboard"
    patch = {"stringData": {"GITHUB_WEBHOOK_SECRET": "patched"}}
    merge = {"content-type": "application/merge-patch+json"}
    (await admin.patch(path, json=patch, headers=merge)).raise_for_status()
    assert await webhook_secret(admin, path) == "patched"
    helm.run("upgrade", values(OWN))
    assert await webhook_secret(admin, path) == "hook"
    (command,) = re.findall(r"`(helm upgrade [^`]*webhookSecret[^`]*)`", README)
    for theirs, ours in (("CHART", str(CHART)), ("upgrade switchboard", f"upgrade {RELEASE}")):
        command = command.replace(theirs, ours)
    _, *arguments = shlex.split(command.replace("-n switchboard", f"-n {PLACE}"))
    code, said = run(*arguments, cluster=cluster.kubeconfig)
    assert code == 0, said
    assert await webhook_secret(admin, path) == "NEW OLD"
    helm.uninstall()
    (await admin.delete(RUNNERS)).raise_for_status()
    await until(lambda: nothing_left(admin))


async def webhook_secret(admin: httpx.AsyncClient, path: str) -> str:
    """What the receiver is given."""
    data = (await admin.get(path)).raise_for_status().json()["data"]
    return base64.b64decode(data["GITHUB_WEBHOOK_SECRET"]).decode()


async def egress_ports(admin: httpx.AsyncClient) -> list[int]:
    """Where the controller may connect to, besides DNS."""
    name = f"{RELEASE}-switchboard-controller"
    answer = await admin.get(f"/apis/networking.k8s.io/v1/namespaces/{PLACE}/networkpolicies/{name}")
    return [each["port"] for each in answer.raise_for_status().json()["spec"]["egress"][1]["ports"]]


async def namespace_stays(admin: httpx.AsyncClient, path: str = RUNNERS) -> bool:
    """Whether it is there and not on its way out."""
    answer = await admin.get(path)
    return answer.status_code == 200 and "deletionTimestamp" not in answer.json()["metadata"]


class Helm:
    """Helm with a values file."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._kubeconfig = cluster.kubeconfig
        self._file = folder / "values.yaml"

    def uninstall(self) -> None:
        """Take the release away; it must succeed."""
        code, said = run("uninstall", RELEASE, "--namespace", PLACE, cluster=self._kubeconfig)
        assert code == 0, said

    def run(self, command: str, given: str, chart: Path = CHART) -> str:
        """Install or upgrade; it must succeed. What helm said."""
        self._file.write_text(given, encoding="utf-8")
        where = ["--namespace", PLACE, "--values", str(self._file)]
        code, said = run(command, RELEASE, str(chart), *where, cluster=self._kubeconfig)
        assert code == 0, said
        return said


def commands_of(notes: str) -> list[str]:
    """What people are told to type."""
    return [line.strip() for line in notes.splitlines() if line.startswith("     ")]


async def deployed(admin: httpx.AsyncClient, component: str) -> int:
    """How many replicas a component should have."""
    name = f"{RELEASE}-switchboard-{component}"
    answer = await admin.get(f"/apis/apps/v1/namespaces/{PLACE}/deployments/{name}")
    return int(answer.raise_for_status().json()["spec"]["replicas"])


async def has_pods(admin: httpx.AsyncClient, components: set[str]) -> bool:
    """Whether exactly these components have pods that are not on their way out."""
    answer = await admin.get(f"/api/v1/namespaces/{PLACE}/pods")
    pods = [each["metadata"] for each in answer.raise_for_status().json()["items"]]
    alive = [each for each in pods if "deletionTimestamp" not in each]
    return {each["labels"]["app.kubernetes.io/component"] for each in alive} == components


async def nothing_left(admin: httpx.AsyncClient) -> bool:
    """Whether no object of the release is there any more, in any namespace."""
    everywhere = {place.replace("/namespaces/{}", "") for place in PLACES.values()}
    for place in everywhere:
        answer = await admin.get(place, params={"labelSelector": OWN_LIST})
        if answer.status_code != 200 or answer.json()["items"]:  # an answer that does not come proves nothing
            return False
    return True


async def test_objects_can_be_applied_without_helm(admin: httpx.AsyncClient) -> None:
    """As the README says: no object needs another one to be there first but its namespace, and none acts by itself."""
    advertises = {"runnerNamespace": {"create": False}, "config": {"boards": {"advertise": True}}}
    code, text = template(values(advertises), "--no-hooks")
    assert code == 0, text
    objects = [obj for obj in yaml.safe_load_all(text) if obj]
    assert {"Deployment", "Role", "ClusterRole"} <= {obj["kind"] for obj in objects} <= PLACES.keys()
    # A hook that is applied is an object like any other: the doctor's pod, and the job that takes the slots off.
    assert not [obj for obj in objects if obj["kind"] in ("Pod", "Job")]
    for obj in objects:
        if obj["metadata"].get("namespace") == NAMESPACE:
            assert (await dry_run(admin, obj)).status_code in (200, 201)
