"""constraints.txt pins what pyproject.toml asks for, by hash, and does not say where packages come from."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "constraints.txt").read_text(encoding="utf-8")
PIN = re.compile(
    r"^([a-z0-9-]+)==\S+(?: ; [^\\\n]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M
)


def normalised(requirement: str) -> str:
    """The package's name as pins spell it."""
    name = re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def test_everything_that_is_asked_for_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    asked = {normalised(one) for group in [project["dependencies"], *extras.values()] for one in group}
    assert asked - {pin[1] for pin in PIN.finditer(LOCK)} == set()


def test_every_pin_has_a_hash_and_there_is_nothing_else() -> None:
    rest = PIN.sub("", LOCK)
    assert [line for line in rest.splitlines() if line.strip() and not line.strip().startswith("#")] == []


def test_the_lock_names_no_address() -> None:
    assert "://" not in LOCK
    assert "index-url" not in LOCK
    assert "find-links" not in LOCK
