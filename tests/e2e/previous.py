"""The program before this one: what stood on the main line before it last got a migration."""

import subprocess
from functools import partial
from pathlib import Path

from tests.chart.helm import ROOT
from tests.clusters import leave_out

MIGRATIONS = "controller/gateways/postgres/migrations"


def previous_program(folder: Path, repository: Path = ROOT) -> Path:
    """Its folder, written from the repository's history; left out where that is not whole."""
    git = partial(_git, repository)
    newest = git("log", "--first-parent", "-m", "--diff-filter=A", "-1", "--format=%H", "--", MIGRATIONS)
    commit = git("rev-parse", "--verify", "--quiet", f"{newest}^1") if newest else ""
    if not commit:
        leave_out("the repository's history; git fetch --unshallow", needs="the program before this one")
    tree = folder / "previous"
    tree.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit], cwd=repository, capture_output=True, check=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    return tree


def migrations_of(tree: Path) -> set[int]:
    """The numbers of a program's migrations."""
    return {int(file.name[:4]) for file in (tree / MIGRATIONS).glob("*.sql")}


def _git(repository: Path, *arguments: str) -> str:
    """What git says; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=repository, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
