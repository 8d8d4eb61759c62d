"""Real boards: each a containerd and a kubelet of its own on this machine, with a node that offers slots."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from hack.cluster.control_plane import ControlPlane, NotReady, free_ports, wait_for
from hack.cluster.images import PAUSE, PAUSE_IMAGE, write_image
from hack.cluster.packages import PLUGINS, node_address
from hack.cluster.programs import program

RESOURCE = "riseproject.com/runner"
BOARD_LABEL = "riseproject.dev/board"
JSON_PATCH = "application/json-patch+json"
IMPORT_LIMIT = 60.0
# Where the shims of every containerd have their sockets and runc its state, whatever a containerd is told.
RUNTIME_STATE = Path("/run/containerd")

CONTAINERD = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


@dataclass(frozen=True, slots=True)
class BoardSpec:
    """A board to make: its node's name, the value of the board label, and how many runners it takes."""

    name: str
    board: str
    slots: int = 1


def hide_runtime_state() -> None:
    """Keep what boards write outside their folder in memory of this namespace, with which it goes."""
    RUNTIME_STATE.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(RUNTIME_STATE)], check=True)


class Board:
    """One board; its two processes are `containerd-NAME` and `kubelet-NAME`."""

    def __init__(self, spec: BoardSpec, number: int, folder: Path, plane: ControlPlane) -> None:
        self.spec = spec
        self._number = number
        self._folder = folder / spec.name
        self._plane = plane

    @property
    def kubelet(self) -> str:
        """The name of its kubelet's process."""
        return f"kubelet-{self.spec.name}"

    @property
    def _runtime(self) -> str:
        return f"containerd-{self.spec.name}"

    def start_runtime(self) -> None:
        """Start containerd."""
        (self._folder / "cni").mkdir(parents=True)
        self._write("containerd.toml", CONTAINERD.format(folder=self._folder, pause=PAUSE, plugins=PLUGINS))
        network = {
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "subnet": f"10.253.{self._number}.0/24",
                "dataDir": f"{self._folder}/ipam",
            },
        }
        conflist = {"cniVersion": "0.4.0", "name": self.spec.name, "plugins": [network]}
        self._write("cni/10-ptp.conflist", json.dumps(conflist))
        command = ["containerd", "--config", f"{self._folder}/containerd.toml"]
        self._plane.processes.start(self._runtime, command)

    def start_kubelet(self) -> None:
        """Start the kubelet on its runtime; `wait_until_ready` still has to be called."""
        socket = self._folder / "containerd.sock"
        wait_for(self._runtime, self._plane.processes, socket.exists)
        write_image(PAUSE_IMAGE, self._folder / "pause.tar")
        self.load(self._folder / "pause.tar")
        port, health = free_ports(2)
        address = node_address()
        self._write("kubelet.yaml", yaml.safe_dump(self._kubelet_settings(port, health, str(address))))
        kubeconfig = self._plane.credentials.kubeconfig(f"system:node:{self.spec.name}", self._plane.server)
        arguments = [
            f"--config={self._folder}/kubelet.yaml",
            f"--kubeconfig={kubeconfig}",
            f"--root-dir={self._folder}/kubelet",
            f"--cert-dir={self._folder}/kubelet-pki",
            f"--hostname-override={self.spec.name}",
            f"--node-ip={address}",
            f"--node-labels={BOARD_LABEL}={self.spec.board}",
        ]
        self._plane.processes.start(self.kubelet, [str(program("kubelet")), *arguments])

    def load(self, image: Path) -> None:
        """Load an image from a tar."""
        command = [
            "ctr",
            "--address",
            f"{self._folder}/containerd.sock",
            "--namespace",
            "k8s.io",
            "images",
            "import",
        ]
        command += ["--snapshotter", "native", str(image)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_LIMIT, check=False)
        if done.returncode:
            raise NotReady(f"{image} could not be loaded: {done.stdout} {done.stderr}")

    def revive(self) -> None:
        """Start the kubelet again; it forgets the slots, so they are offered anew."""
        self._plane.processes.start_again(self.kubelet)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Return once the node is Ready and offers its slots."""
        wait_for(self.kubelet, self._plane.processes, self._ready_and_offering)

    def _ready_and_offering(self) -> bool:
        path = f"/api/v1/nodes/{self.spec.name}"
        status = json.loads(self._plane.ask("GET", path))["status"]
        conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
        offered = status.get("allocatable", {}).get(RESOURCE)
        if offered != str(self.spec.slots):
            where = RESOURCE.replace("/", "~1")
            patch = [
                {"op": "add", "path": f"/status/{kind}/{where}", "value": str(self.spec.slots)}
                for kind in ("capacity", "allocatable")
            ]
            self._plane.ask("PATCH", f"{path}/status", patch, JSON_PATCH)
        return conditions.get("Ready") == "True" and offered == str(self.spec.slots)

    def _kubelet_settings(self, port: int, health: int, address: str) -> Mapping[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": address,
            "port": port,
            "healthzPort": health,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self._plane.credentials.authority)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self._folder}/containerd.sock",
            "podLogsDir": f"{self._folder}/pod-logs",
            "volumePluginDir": f"{self._folder}/volume-plugins",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": "/",
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "2s",
            "nodeLeaseDurationSeconds": 10,
            "syncFrequency": "5s",
            "resolvConf": "",
            "enableDebuggingHandlers": True,
            "makeIPTablesUtilChains": False,  # they would stay in the machine's packet filter
        }

    def _write(self, name: str, content: str) -> None:
        (self._folder / name).write_text(content, encoding="utf-8")
