"""The test runner: what cannot be had is left out with one clear line, in CI it is a failure."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from hack.run_tests import verdict, waiting_runs
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent
ENDLESS = """
import pathlib, time, pytest

@pytest.fixture
def thing():
    yield
    time.sleep(2)  # what a database and a cluster take
    pathlib.Path("{folder}/ended").touch()

@pytest.mark.timeout(0)
def test_endless(thing):
    pathlib.Path("{folder}/begun").touch()  # not earlier: what is cut short while it starts has nothing to end
    time.sleep(600)
"""
# Nothing is cached in these places, nothing can be fetched into them.
WITHOUT_GO = {"PATH": "nowhere", "PIP_NO_INDEX": "1"}
OFFLINE = {"GOPROXY": "off"}
PATIENCE = 100.0  # seconds: all unit tests are collected first


def e2e(folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """`make e2e`, as far as it gets on a machine with an empty cache."""
    empty = {"XDG_CACHE_HOME": str(folder), "GOMODCACHE": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "KUBEBUILDER_ASSETS")}
    command = [sys.executable, "-m", "hack.run_tests", "e2e"]
    given = {**kept, **empty, **environment}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("environment", [WITHOUT_GO, OFFLINE], ids=["without Go", "offline"])
def test_without_its_parts_e2e_is_left_out_with_one_line_and_in_ci_it_fails(
    tmp_path: Path, environment: Mapping[str, str]
) -> None:
    left_out = e2e(tmp_path, environment)
    assert left_out.returncode == 0
    (line,) = left_out.stdout.splitlines()
    assert line.startswith("tier e2e: left out, missing: ")
    in_ci = e2e(tmp_path, {**environment, "CI": "true"})
    assert in_ci.returncode == 1
    assert in_ci.stdout.splitlines() == [line]
    assert in_ci.stderr.splitlines()[-1] == "CI: a missing part is a failure"


async def test_what_was_started_ends_in_order_before_an_interrupted_run_is_over(tmp_path: Path) -> None:
    file = tmp_path / "test_endless.py"
    file.write_text(ENDLESS.format(folder=tmp_path), encoding="utf-8")
    arguments = ["unit", "-c", "pyproject.toml", "-n", "0", "-k", "endless", "-p", "no:cacheprovider"]
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hack.run_tests", *arguments, str(file)),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )

    async def begun() -> bool:
        return there(tmp_path / "begun")

    await until(begun, PATIENCE)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    _, said = await run.communicate()
    assert there(tmp_path / "ended")
    assert b"Traceback" not in said


def there(file: Path) -> bool:
    return file.exists()


def test_the_fleet_has_the_machine_to_itself_and_comes_last() -> None:
    beside, fleet = waiting_runs("e2e", one_cluster=False)
    file = str(ROOT / "tests" / "e2e" / "test_fleet.py")
    assert fleet == [file]
    assert f"--ignore={file}" in beside
    assert "-n" in beside
    assert "-n" not in waiting_runs("e2e", one_cluster=True)[0]


@pytest.mark.parametrize(
    ("codes", "code"), [([0, 0], 0), ([0, 1], 1), ([2, 0], 2), ([0, 5], 0), ([5, 1], 1), ([5, 5], 5)]
)
def test_a_run_in_which_no_test_was_chosen_is_no_failure_beside_one_with_tests(
    codes: list[int], code: int
) -> None:
    assert verdict(codes) == code
