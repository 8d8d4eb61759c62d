"""kwok: hundreds of nodes that exist only for the API server, whose pods run as soon as they are placed."""

import urllib.request
from http import HTTPStatus
from pathlib import Path

from hack.cluster.control_plane import ControlPlane, free_ports, wait_for
from hack.cluster.programs import program

ANNOTATION = "kwok.x-k8s.io/node"
FAKE = "fake"
STAGES = Path(__file__).resolve().parent / "kwok-stages.yaml"


def start_kwok(folder: Path, plane: ControlPlane) -> None:
    """Let kwok play the kubelet of every node with its annotation; real nodes are left alone."""
    (port,) = free_ports(1)
    plane.processes.start(
        "kwok",
        [
            str(program("kwok")),
            f"--kubeconfig={plane.kubeconfig}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={ANNOTATION}={FAKE}",
            "--node-lease-duration-seconds=40",
            f"--config={STAGES}",
            f"--server-address=127.0.0.1:{port}",
        ],
        {"HOME": str(folder)},
    )

    def healthy() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return bool(answer.status == HTTPStatus.OK)

    wait_for("kwok", plane.processes, healthy)
