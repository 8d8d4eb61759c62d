"""What a real node needs besides Kubernetes: a container runtime, network plugins and a static shell, from Debian."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from hack.cluster.programs import CannotBuild, say

# package → a program that it brings, wherever that is, or a file that is needed in its place
PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "busybox-static": "/bin/busybox",
}
BUSYBOX = Path(PACKAGES["busybox-static"])
PLUGINS = Path(PACKAGES["containernetworking-plugins"]).parent


def cannot_run_nodes() -> str | None:
    """Why no real node can run here, if so; installs nothing."""
    if sys.platform != "linux":
        return "Linux, to run a kubelet"
    if os.geteuid() != 0:
        return "root, to run a kubelet"
    if _missing() and shutil.which("apt-get") is None:
        return "Debian packages " + " ".join(_missing())
    if node_address() is None:
        return "a network address besides loopback, for a kubelet"
    return None


def install_packages() -> None:
    """Install what is missing, and say what."""
    missing = _missing()
    if not missing:
        return
    say(f"Installing Debian packages: {' '.join(missing)} …")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}

    def apt_get(*arguments: str) -> bool:
        command = ["apt-get", "-qq", *arguments]
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    install = ("install", "--yes", "--no-install-recommends", *missing)
    if not apt_get(*install) and not (apt_get("update") and apt_get(*install)):
        raise CannotBuild(f"apt-get could not install {' '.join(missing)}")


def node_address() -> str | None:
    """The address by which the API server reaches kubelets; a kubelet refuses loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks which address would be used
        except OSError:
            return None
        address = str(probe.getsockname()[0])
        return None if address.startswith("127.") else address


def _missing() -> list[str]:
    return [package for package, found in PACKAGES.items() if shutil.which(found) is None]
