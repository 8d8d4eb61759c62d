"""The node object of a board, as its kubelet registers and reports it. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from controller.simulators.cluster.objects import Json, set_condition, timestamp

RESOURCE = "riseproject.com/runner"
HARDWARE = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


def make_node(
    name: str,
    ip: str,
    labels: Mapping[str, str],
    slots: int,
    taints: Sequence[Mapping[str, str]],
    now: datetime,
) -> Json:
    """A board as a Ready node; without slots it does not offer the resource at all."""
    offered = {**HARDWARE, **({RESOURCE: str(slots)} if slots else {})}
    ours = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "riscv64", "kubernetes.io/os": "linux"}
    node: Json = {
        "metadata": {"name": name, "labels": {**ours, **labels}},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {
            "capacity": dict(offered),
            "allocatable": dict(offered),
            "addresses": [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "architecture": "riscv64",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kernelVersion": "6.18.0",
                "kubeletVersion": "v1.36.0",
                "operatingSystem": "linux",
                "osImage": "Simulated Linux",
            },
        },
    }
    report_ready(node, now)
    return node


def report_ready(node: Json, now: datetime) -> None:
    """Write the conditions of a healthy board."""
    status = node["status"]
    for kind, (reason, message) in PRESSURES.items():
        set_condition(status, kind, "False", now, reason=reason, message=message)
    set_condition(
        status, "Ready", "True", now, reason="KubeletReady", message="kubelet is posting ready status"
    )
    _beat(status, now)


def report_silence(node: Json, now: datetime) -> None:
    """Write the conditions of a board whose kubelet is not heard of."""
    status = node["status"]
    for kind in (*PRESSURES, "Ready"):
        set_condition(
            status,
            kind,
            "Unknown",
            now,
            reason="NodeStatusUnknown",
            message="Kubelet stopped posting node status.",
        )


def taint(node: Json, key: str, effect: str, now: datetime) -> None:
    """Add a taint once."""
    taints = node["spec"].setdefault("taints", [])
    if not any(each["key"] == key and each["effect"] == effect for each in taints):
        taints.append({"key": key, "effect": effect, "timeAdded": timestamp(now)})


def untaint(node: Json, key: str) -> None:
    """Take a taint away, whatever its effects."""
    left = [each for each in node["spec"].get("taints") or () if each["key"] != key]
    if left:
        node["spec"]["taints"] = left
    else:
        node["spec"].pop("taints", None)


def has_taint(node: Json, key: str) -> bool:
    """Whether the node carries the taint."""
    return any(each["key"] == key for each in node["spec"].get("taints") or ())


def _beat(status: Json, now: datetime) -> None:
    for condition in status["conditions"]:
        condition.pop("lastProbeTime", None)
        condition["lastHeartbeatTime"] = timestamp(now)
