"""A cluster as those who use it see it: where it is, and the means to break it.

    with a_cluster(boards=[BoardSpec("board-1", "rv1")]) as cluster: …

The cluster goes when the block is left, and also when this process dies in whatever way.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hack.cluster import control_plane
from hack.cluster.boards import BoardSpec
from hack.cluster.images import Image, write_image
from hack.cluster.packages import cannot_run_nodes, install_packages
from hack.cluster.programs import cannot_have, program

ROOT = Path(__file__).resolve().parent.parent.parent
# The kernel ends everything in the namespace with its first process; mounts made inside are seen by nobody else.
OWN_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc")
GIVEN = "SWITCHBOARD_E2E"
STOP_LIMIT = 60.0


class ClusterFailed(Exception):
    """The keeper of the cluster refused or could not do what it was told."""


class Cluster:
    """A running cluster; `folder` is None for one that was there before, which cannot be broken."""

    def __init__(self, kubeconfig: Path, keeper: subprocess.Popen[str] | None, folder: Path | None) -> None:
        self.kubeconfig = kubeconfig
        self.folder = folder
        self._keeper = keeper

    @property
    def ours(self) -> bool:
        """Whether its parts may be stopped and killed."""
        return self._keeper is not None

    def restart_api_server(self) -> None:
        """End the API server and bring it up again on the same port."""
        self._tell("restart_api_server")

    def compact(self) -> None:
        """Make etcd forget everything but the present."""
        self._tell("compact")

    def kill_kubelet(self, board: str) -> None:
        """End a board's kubelet with SIGKILL; its containers go on."""
        self._tell("kill_kubelet", name=board)

    def revive_kubelet(self, board: str) -> None:
        """Start a board's kubelet again and wait until the node is Ready."""
        self._tell("revive_kubelet", name=board)

    def load_image(self, image: Image) -> None:
        """Make an image known on every board."""
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            write_image(image, Path(file.name))
            self._tell("load", image=file.name)

    def _tell(self, command: str, **arguments: object) -> None:
        if self._keeper is None or self._keeper.stdin is None:
            raise ClusterFailed(f"{command}: this cluster is not ours")
        self._keeper.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
        self._keeper.stdin.flush()
        read_answer(self._keeper)


def cannot_start(*, boards: bool, kwok: bool) -> str | None:
    """What is missing for a cluster of our own, if anything; builds and installs nothing."""
    names = [*control_plane.PROGRAMS, *(["kubelet"] if boards else []), *(["kwok"] if kwok else [])]
    return (cannot_run_nodes() if boards else None) or cannot_have(*names)


def given_kubeconfig() -> Path | None:
    """The kubeconfig of an existing cluster, if the tests may use it."""
    if os.environ.get(GIVEN) != "1" or not os.environ.get("KUBECONFIG"):
        return None
    return Path(os.environ["KUBECONFIG"])


@contextmanager
def a_cluster(
    boards: Sequence[BoardSpec] = (), *, scheduler: bool = True, kwok: bool = False
) -> Iterator[Cluster]:
    """Start a cluster of our own; what it is made of is built or installed first."""
    folder = Path(tempfile.mkdtemp(prefix="switchboard-cluster-"))
    keeper = subprocess.Popen(
        keeper_command(folder, boards, scheduler=scheduler, kwok=kwok),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is ours to handle; its standard input tells the keeper
    )
    try:
        kubeconfig = Path(read_answer(keeper)["kubeconfig"])
        yield Cluster(kubeconfig, keeper, folder)
    finally:
        if keeper.stdin is not None:
            keeper.stdin.close()
        keeper.wait(STOP_LIMIT)
        shutil.rmtree(folder, ignore_errors=True)  # a keeper that crashed has left it


def prepare(*, boards: bool, kwok: bool) -> None:
    """Build and install what a cluster is made of, unless it is there."""
    for name in (*control_plane.PROGRAMS, *(["kwok"] if kwok else []), *(["kubelet"] if boards else [])):
        program(name)
    if boards:
        install_packages()


def keeper_command(folder: Path, boards: Sequence[BoardSpec], *, scheduler: bool, kwok: bool) -> list[str]:
    """How the keeper is started, once everything that it will start is there."""
    prepare(boards=bool(boards), kwok=kwok)
    command = [sys.executable, "-m", "hack.cluster.keeper", "--folder", str(folder)]
    command += ["--scheduler"] if scheduler else []
    command += ["--kwok"] if kwok else []
    if boards:
        command = [*OWN_NAMESPACE, *command]
    for spec in boards:
        command += ["--board", f"{spec.name}:{spec.board}:{spec.slots}"]
    return command


def read_answer(keeper: subprocess.Popen[str]) -> dict[str, Any]:
    """The keeper's next line; ClusterFailed if it is a refusal, or if there is none."""
    line = keeper.stdout.readline() if keeper.stdout else ""
    answer: dict[str, Any] = json.loads(line) if line else {"ok": False, "error": "the keeper is gone"}
    if not answer["ok"]:
        raise ClusterFailed(answer["error"])
    return answer
