"""The process that keeps one cluster: starts its parts, obeys commands, and takes everything along when it ends.

    tests, or `make cluster-up` ──JSON lines──▶ keeper ─▶ etcd, kube-apiserver, …, kwok, containerd, kubelet

With real boards it is the first process of a pid namespace of its own: whatever ends it, also SIGKILL, ends the
containers too. Its standard input ends when whoever asked for the cluster is gone, and then it ends.
"""

import argparse
import json
import os
import select
import shutil
import signal
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hack.cluster.boards import Board, BoardSpec, hide_runtime_state
from hack.cluster.control_plane import ControlPlane, start_control_plane
from hack.cluster.kwok import start_kwok
from hack.cluster.processes import Processes, unmount_below

TICK = 1.0  # seconds between two looks for the dead
STOP = "stop"


class Keeper:
    """The parts of one cluster, and the commands that change them."""

    def __init__(self, folder: Path, specs: list[BoardSpec]) -> None:
        (folder / "logs").mkdir()
        self._folder = folder
        self._specs = specs
        self.processes = Processes(folder / "logs")
        self._boards: dict[str, Board] = {}
        self._plane: ControlPlane | None = None
        self._commands: dict[str, Callable[..., object]] = {
            "restart_api_server": lambda: self.plane.restart_api_server(),
            "compact": self._compact,
            "load": self._load,
            "kill_kubelet": self._kill_kubelet,
            "revive_kubelet": lambda name: self._boards[name].revive(),
        }

    @property
    def plane(self) -> ControlPlane:
        """The control plane, once it was started."""
        if self._plane is None:
            raise RuntimeError("the control plane was not started")
        return self._plane

    def start(self, *, scheduler: bool, kwok: bool) -> None:
        """Start everything and wait until it is ready."""
        names = [spec.name for spec in self._specs]
        self._plane = start_control_plane(self._folder, self.processes, names, scheduler=scheduler)
        if kwok:
            start_kwok(self._folder, self._plane)
        for number, spec in enumerate(self._specs, start=1):
            self._boards[spec.name] = Board(spec, number, self._folder, self._plane)
        if self._boards:
            hide_runtime_state()
        # Each waits for its own part only when all of them are starting.
        for board in self._boards.values():
            board.start_runtime()
        for board in self._boards.values():
            board.start_kubelet()
        for board in self._boards.values():
            board.wait_until_ready()

    def obey(self, line: str) -> dict[str, Any]:
        """Carry out one command and say how it went."""
        try:
            asked = json.loads(line)
            self._commands[asked.pop("do")](**asked)
        except Exception as error:
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}
        return {"ok": True}

    def _kill_kubelet(self, name: str) -> None:
        self.processes.stop(self._boards[name].kubelet, signal.SIGKILL)

    def _load(self, image: str) -> None:
        for board in self._boards.values():
            board.load(Path(image))

    def _compact(self) -> None:
        """Make etcd forget everything but the present."""

        def ask(path: str, body: object) -> Any:
            request = urllib.request.Request(  # noqa: S310 (our own etcd)
                f"{self.plane.etcd}/v3/kv/{path}", json.dumps(body).encode()
            )
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 (our own etcd)
                return json.load(answer)

        revision = ask("range", {"key": "Zm9v"})["header"]["revision"]
        ask("compaction", {"revision": revision, "physical": True})


def main(arguments: list[str]) -> int:
    """Keep a cluster until standard input ends, `stop` is said, or a signal comes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--board", action="append", default=[], metavar="NAME:BOARD:SLOTS")
    parser.add_argument("--scheduler", action="store_true")
    parser.add_argument("--kwok", action="store_true")
    given = parser.parse_args(arguments)
    split = [each.split(":") for each in given.board]
    keeper = Keeper(given.folder, [BoardSpec(name, board, int(slots)) for name, board, slots in split])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        keeper.start(scheduler=given.scheduler, kwok=given.kwok)
        _say({"ok": True, "kubeconfig": str(keeper.plane.kubeconfig)})
        _serve(keeper)
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    except Exception as error:
        _say({"ok": False, "error": f"{type(error).__name__}: {error}"})
        return 1
    finally:
        keeper.processes.stop_all()
        unmount_below(given.folder)
        shutil.rmtree(given.folder, ignore_errors=True)
    return 0


def _serve(keeper: Keeper) -> None:
    unread = b""
    while True:
        readable, _, _ = select.select([sys.stdin], [], [], TICK)
        keeper.processes.reap()
        if not readable:
            continue
        chunk = os.read(sys.stdin.fileno(), 65536)
        if not chunk:
            return
        *lines, unread = (unread + chunk).split(b"\n")
        for line in lines:
            if line.decode().strip() == STOP:
                return
            _say(keeper.obey(line.decode()))


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
