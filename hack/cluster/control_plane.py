"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback ports of their own, with real RBAC."""

import json
import random
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.credentials import ADMIN, Credentials, make_credentials
from hack.cluster.processes import Processes
from hack.cluster.programs import program

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
READY_LIMIT = 120.0  # seconds; 2 are usual
LOOK = 0.1
SERVICE_RANGE = "10.254.0.0/24"
NODE_SILENCE = (
    "40s"  # after which a node is given up; a busy machine may keep a kubelet silent for half of it
)
PORTS = range(10_000, 32_000)  # below those that outgoing connections take, also while a program is away


class NotReady(Exception):
    """A part of the cluster did not come up; says what it wrote last."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running control plane, and the admin's way to it."""

    server: str
    etcd: str
    credentials: Credentials
    processes: Processes

    @property
    def kubeconfig(self) -> Path:
        """The admin's."""
        return self.credentials.kubeconfig(ADMIN, self.server)

    def ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> bytes:
        """One request by the admin."""
        headers = {"authorization": f"Bearer {self.credentials.tokens[ADMIN]}", "content-type": content_type}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)  # noqa: S310 (https)
        trusted = ssl.create_default_context(cafile=str(self.credentials.authority))
        with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:  # noqa: S310 (https)
            content: bytes = answer.read()
            return content

    def wait_until_ready(self) -> None:
        """Return once the API server answers for its whole self."""
        wait_for("kube-apiserver", self.processes, lambda: self.ask("GET", "/readyz") == b"ok")

    def restart_api_server(self) -> None:
        """End it and bring it up again on the same port."""
        self.processes.stop("kube-apiserver")
        self.processes.start_again("kube-apiserver")
        self.wait_until_ready()


def wait_for(name: str, processes: Processes, holds: Callable[[], bool]) -> None:
    """Wait for a process to become ready; NotReady with its last words if it does not."""
    deadline = time.monotonic() + READY_LIMIT
    while time.monotonic() < deadline and name not in processes.ended():
        try:
            if holds():
                return
        except (urllib.error.URLError, OSError, KeyError):
            pass
        time.sleep(LOOK)
    raise NotReady(f"{name} did not become ready; it wrote:\n{processes.tail(name)}")


def start_control_plane(
    folder: Path, processes: Processes, nodes: Sequence[str], *, scheduler: bool
) -> ControlPlane:
    """Start it all and wait until it answers."""
    credentials = make_credentials(folder / "credentials", list(nodes))
    etcd, peer, port = free_ports(3)
    plane = ControlPlane(f"https://127.0.0.1:{port}", f"http://127.0.0.1:{etcd}", credentials, processes)
    processes.start("etcd", _etcd(folder, etcd, peer))
    processes.start("kube-apiserver", _api_server(folder, plane, port))
    plane.wait_until_ready()
    admin = str(plane.kubeconfig)
    processes.start("kube-controller-manager", _controller_manager(plane, admin))
    if scheduler:
        limits = ["--kube-api-qps=500", "--kube-api-burst=1000"]
        processes.start(
            "kube-scheduler",
            [
                str(program("kube-scheduler")),
                f"--kubeconfig={admin}",
                "--leader-elect=false",
                "--secure-port=0",
                *limits,
            ],
        )
    wait_for("kube-controller-manager", processes, lambda: _has_default_account(plane))
    return plane


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nothing listens on, at random, so that two who ask do not get the same."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Whether nothing listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _etcd(folder: Path, port: int, peer: int) -> list[str]:
    client, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        str(program("etcd")),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",  # a test's cluster need not survive the machine
    ]


def _api_server(folder: Path, plane: ControlPlane, port: int) -> list[str]:
    credentials = plane.credentials
    certificate, key = credentials.pair("apiserver")
    kubelet_certificate, kubelet_key = credentials.pair("kubelet-client")
    accounts = credentials.folder / "service-accounts.key"
    return [
        str(program("kube-apiserver")),
        f"--etcd-servers={plane.etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--token-auth-file={credentials.folder / 'tokens.csv'}",
        f"--service-account-key-file={accounts}",
        f"--service-account-signing-key-file={accounts}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",  # nobody resolves the boards' names
        f"--kubelet-client-certificate={kubelet_certificate}",
        f"--kubelet-client-key={kubelet_key}",
        "--endpoint-reconciler-type=none",  # there is no address but loopback, which an endpoint may not have
    ]


def _controller_manager(plane: ControlPlane, admin: str) -> list[str]:
    return [
        str(program("kube-controller-manager")),
        f"--kubeconfig={admin}",
        f"--service-account-private-key-file={plane.credentials.folder / 'service-accounts.key'}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--node-monitor-grace-period={NODE_SILENCE}",
        "--node-monitor-period=2s",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def _has_default_account(plane: ControlPlane) -> bool:
    return bool(plane.ask("GET", "/api/v1/namespaces/default/serviceaccounts/default"))
