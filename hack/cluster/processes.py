"""Child processes that never outlive their parent: each is started with a log file and ended by its own id."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 3.0  # seconds to end in good order; an API server takes all of them while it is watched
PR_SET_PDEATHSIG = 1
MNT_DETACH = 2
LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Command:
    """How a process is started, also when it is started again."""

    arguments: Sequence[str]
    environment: Mapping[str, str]


class Processes:
    """The processes by name, in the order in which they were first started."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._commands: dict[str, Command] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start a process; what it writes goes to a file of its name."""
        self._commands[name] = Command(arguments, {**os.environ, **(environment or {})})
        self.start_again(name)

    def start_again(self, name: str) -> None:
        """Start a process that was stopped, as it was started before."""
        command = self._commands[name]
        with (self._logs / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command.arguments,
                env=command.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a process and wait for it; by force if it takes too long."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self) -> None:
        """End everything at once, the last started first; nothing of it is used again, so nobody says goodbye."""
        for name in reversed(list(self._running)):
            self.stop(name, signal.SIGKILL)

    def ended(self) -> dict[str, int]:
        """The processes that ended by themselves, with their exit codes."""
        codes = {name: process.poll() for name, process in self._running.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def tail(self, name: str, lines: int = 20) -> str:
        """The last lines that a process wrote."""
        log = self._logs / f"{name}.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""

    def reap(self) -> None:
        """Collect the dead who were left to us: containers' shims, when we are the first process of a namespace."""
        own = {process.pid for process in self._running.values()}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or found.si_pid in own:
                return
            os.waitpid(found.si_pid, 0)


def die_with_parent() -> None:
    """Between fork and exec: have the kernel end this process when its parent is gone."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def unmount_below(folder: Path) -> None:
    """Take off what kubelets and containers have mounted there, the deepest first, though it may be in use."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    points = [Path(line.split()[4]) for line in lines]
    for point in sorted((point for point in points if folder in point.parents), reverse=True):
        LIBC.umount2(str(point).encode(), MNT_DETACH)
