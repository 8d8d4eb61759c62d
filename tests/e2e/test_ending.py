"""A cluster with a real board takes its containers along, even when nobody is left to end them."""

import signal
from functools import partial

import httpx

from hack.cluster.boards import RUNTIME_STATE
from hack.cluster.client import cannot_start, given_kubeconfig
from hack.cluster.images import PAUSE
from tests.clusters import OWN, asking, leave_out
from tests.contract.cluster.servers import client_of
from tests.e2e.systems import Json
from tests.waiting import until

PODS = "/api/v1/namespaces/default/pods"
POD: Json = {
    "metadata": {"name": "forgotten"},
    "spec": {
        "nodeName": "board-1",
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "containers": [{"name": "sleeper", "image": PAUSE, "imagePullPolicy": "Never"}],
    },
}
LEAST = 9  # namespace, keeper, etcd, API server, controllers, containerd, kubelet, and the pod: shim, two containers


async def test_a_running_container_does_not_outlive_a_killed_test_run() -> None:
    missing = OWN if given_kubeconfig() is not None else cannot_start(boards=True, kwok=False)
    if missing is not None:
        leave_out(missing)
    with asking('[BoardSpec("board-1", "rv1")], scheduler=False') as asked:
        async with client_of(asked.kubeconfig) as client:
            (await client.post(PODS, json=POD)).raise_for_status()
            await until(partial(_runs, client), 120)
            (container,) = (await _status(client))["containerStatuses"]
        processes = asked.started()
        assert len(processes) >= LEAST
        # Nothing of a board lies outside its folder either: no state of its containers, no rules for packets.
        state = RUNTIME_STATE / "runc" / "k8s.io" / container["containerID"].removeprefix("containerd://")
        assert not state.exists()
        assert "iptables rules" not in (asked.folder / "logs" / "kubelet-board-1.log").read_text()
        asked.process.send_signal(signal.SIGKILL)
        await asked.all_gone(processes)


async def _runs(client: httpx.AsyncClient) -> bool:
    return bool((await _status(client))["phase"] == "Running")


async def _status(client: httpx.AsyncClient) -> Json:
    answer = await client.get(f"{PODS}/forgotten")
    status: Json = answer.raise_for_status().json()["status"]
    return status
