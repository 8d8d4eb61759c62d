"""The program before this one comes from the history; where that is not whole nothing vanishes unseen in CI."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.previous import MIGRATIONS, migrations_of, previous_program

NOBODY = {f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, env={**os.environ, **NOBODY}, check=True)


def commit_migration(repository: Path, number: int) -> None:
    (repository / MIGRATIONS / f"{number:04}_step.sql").write_text("SELECT 1", encoding="utf-8")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", f"Add {number}")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits with a migration each."""
    origin = tmp_path / "origin"
    (origin / MIGRATIONS).mkdir(parents=True)
    git(origin, "init", "--quiet")
    for number in (1, 2):
        commit_migration(origin, number)
    return origin


def test_it_is_what_stood_there_before_the_newest_migration(repository: Path, tmp_path: Path) -> None:
    assert migrations_of(previous_program(tmp_path, repository)) == {1}


@pytest.mark.parametrize(("in_ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_without_its_history_it_is_left_out_and_in_ci_that_is_a_failure(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_ci: str,
    outcome: type[BaseException],
) -> None:
    git(tmp_path, "clone", "--quiet", "--depth=1", repository.as_uri(), "shallow")
    monkeypatch.setenv("CI", in_ci)
    either = (pytest.fail.Exception, pytest.skip.Exception)  # a skip that nobody catches would skip this test
    with pytest.raises(either, match="missing: the repository's history") as left_out:
        previous_program(tmp_path, tmp_path / "shallow")
    assert left_out.type is outcome
