"""Processes of this machine, as /proc shows them: who descends from whom, and who still lives."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
ZOMBIE = "Z"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be taken for a later one of the same id."""

    pid: int
    born: int  # ticks since the machine was started

    @property
    def alive(self) -> bool:
        """Whether it is still there, and more than an entry in a table."""
        seen = _look(PROC / str(self.pid))
        return seen is not None and seen[1] == self


def mentioning(text: str) -> set[Process]:
    """The processes in whose command line this stands."""
    return {process for _, process in _everyone() if text in command_line(process)}


def command_line(process: Process) -> str:
    """How a process was started; empty when it is gone."""
    try:
        return (PROC / str(process.pid) / "cmdline").read_text(errors="replace").replace("\x00", " ")
    except OSError:
        return ""


def children(pid: int) -> list[Process]:
    """The processes that a process has started."""
    return [process for parent, process in _everyone() if parent == pid]


def descendants(pid: int) -> set[Process]:
    """The children of a process, their children, and so on."""
    found: set[Process] = set()
    parents = {pid}
    everyone = list(_everyone())
    while more := {process for parent, process in everyone if parent in parents} - found:
        found |= more
        parents = {process.pid for process in more}
    return found


def _everyone() -> Iterator[tuple[int, Process]]:
    """All that live, each with the id of its parent."""
    for folder in PROC.glob("[0-9]*"):
        seen = _look(folder)
        if seen is not None:
            yield seen


def _look(folder: Path) -> tuple[int, Process] | None:
    try:
        # The name, in parentheses, may hold anything.
        state, parent, *more = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state == ZOMBIE else (int(parent), Process(int(folder.name), int(more[17])))
