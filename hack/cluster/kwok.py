"""kwok: hundreds of nodes that exist only for the API server, whose pods run as soon as they are placed."""

from pathlib import Path

from hack.cluster.control_plane import ControlPlane
from hack.cluster.programs import program

ANNOTATION = "kwok.x-k8s.io/node"
FAKE = "fake"


def start_kwok(folder: Path, plane: ControlPlane) -> None:
    """Let kwok play the kubelet of every node with its annotation; real nodes are left alone."""
    plane.processes.start(
        "kwok",
        [
            str(program("kwok")),
            f"--kubeconfig={plane.kubeconfig}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={ANNOTATION}={FAKE}",
            "--node-lease-duration-seconds=40",
            "--server-address=",
        ],
        {"HOME": str(folder)},
    )
