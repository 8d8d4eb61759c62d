"""Print the part of constraints.txt that the program itself needs, with its hashes; the image is made from it.

The lock says of every package which others want it (`# via`), so what the program asks for leads to all the rest.
With names, it is what these need instead.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[A-Za-z0-9._-]+")
PIN = re.compile(r"^([a-z0-9._-]+)==")


def runtime_pins(names: set[str] | None = None) -> str:
    """The lines of the lock, in its order."""
    entries = _entries((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    wanted = names or _asked_for()
    while True:
        more = {name for name, (_, wanted_by) in entries.items() if wanted_by & wanted} - wanted
        if not more:
            return "".join(lines for name, (lines, _) in entries.items() if name in wanted)
        wanted |= more


def _asked_for() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {NAME.match(each)[0].lower() for each in project["dependencies"]}  # type: ignore[index]


def _entries(text: str) -> dict[str, tuple[str, set[str]]]:
    """By package: its lines without the comments, and the packages that want it."""
    found: dict[str, tuple[str, set[str]]] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        pin = PIN.match(line)
        comment = re.match(r"\s+#\s+(?:via\s*)?(\S*)", line)
        if pin:
            name = pin[1]
            found[name] = (line, set())
        elif comment:
            found[name][1].add(comment[1])
        elif name:
            found[name] = (found[name][0] + line, found[name][1])
    return found


if __name__ == "__main__":
    print(runtime_pins(set(sys.argv[1:])), end="")
