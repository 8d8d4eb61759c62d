"""Nodes that get their label when the release runs there already: the doctor's command moves it away, for real.

The scheduler is the real one; kwok plays the kubelets, so that Deployments see their new pods become ready.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster.client import Cluster, a_cluster, cannot_start
from hack.cluster.kwok import ANNOTATION, FAKE
from tests.chart.helm import Json
from tests.chart.test_doctor_on_a_cluster import LABEL, Installed, a_node, an_installation
from tests.clusters import leave_out
from tests.waiting import until

PLAYED = {ANNOTATION: FAKE}
TRIAL: Json = {"trialDatabase": {"enabled": True, "password": "x"}}
COMPONENTS = ["controller", "postgresql", "webhook"]
PATIENCE = 120.0  # seconds: pods end, and others are ready
RESTARTED = "kubectl.kubernetes.io/restartedAt"  # what kubectl writes into a pod template, so that it differs
VOLUME: Json = {
    "metadata": {"name": "trial"},
    "spec": {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
    },
}


@pytest.fixture
def scheduling_cluster() -> Iterator[Cluster]:
    """A cluster whose pods are placed and run, on nodes that exist only for its API server."""
    missing = cannot_start(boards=False, kwok=True)
    if missing is not None:
        leave_out(missing)
    with a_cluster(kwok=True) as started:
        yield started


async def test_what_ran_on_a_node_before_it_was_labelled_is_found_and_moved_by_the_command(
    scheduling_cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    first = a_node("first", {}, "1", PLAYED)
    async with an_installation(scheduling_cluster, database_url, tmp_path, [first], TRIAL) as installed:
        admin = installed.admin
        (await admin.post("/api/v1/persistentvolumes", json=VOLUME)).raise_for_status()
        await until(lambda: all_run_on(installed, "first"), PATIENCE)
        (await admin.post("/api/v1/nodes", json=a_node("second", {}, "0", PLAYED))).raise_for_status()
        await installed.patch("/api/v1/nodes/first", {"metadata": {"labels": {LABEL: "rv1"}}})
        finding = (await installed.visit()).about("a board: a job can reach its credentials there")
        assert finding.startswith("FAULT  placement: ")
        (command,) = re.findall(r"`(.*?)`", finding)
        await obey(installed, command)
        await until(lambda: all_run_on(installed, "second"), PATIENCE)
        assert (await installed.visit()).about("placement: ").startswith("ok")


async def obey(installed: Installed, command: str) -> None:
    """What `kubectl rollout restart` does: the pod templates differ from what they were."""
    *words, kinds, flag, selector = shlex.split(command)
    assert (words, flag) == (["kubectl", "-n", installed.place, "rollout", "restart"], "-l")
    change = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: "now"}}}}}
    for kind in kinds.split(","):
        path = f"/apis/apps/v1/namespaces/{installed.place}/{kind}s"
        answer = await installed.admin.get(path, params={"labelSelector": selector})
        for each in answer.raise_for_status().json()["items"]:
            await installed.patch(f"{path}/{each['metadata']['name']}", change)


async def all_run_on(installed: Installed, node: str) -> bool:
    """Whether every component has pods, all of them ready there."""
    answer = await installed.admin.get(f"/api/v1/namespaces/{installed.place}/pods")
    pods = answer.raise_for_status().json()["items"]
    components = {pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods}
    placed = {pod["spec"].get("nodeName") for pod in pods if is_ready(pod)}
    return sorted(components) == COMPONENTS and placed == {node} and all(map(is_ready, pods))


def is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
