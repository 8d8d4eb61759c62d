"""The ways to a cluster that the README names: an existing one, given programs, and one that stays up until told."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from hack.cluster.client import GIVEN, ROOT, Cluster, ClusterFailed, cannot_start, given_kubeconfig
from hack.cluster.control_plane import PROGRAMS
from hack.cluster.programs import program
from tests.clusters import OWN, PATIENCE, asking, leave_out
from tests.contract.cluster.servers import client_of
from tests.processes import command_line, mentioning
from tests.waiting import until


@pytest.fixture
def elsewhere(tmp_path: Path) -> Mapping[str, str]:
    """An environment with the programs in a folder that was given, an empty cache, and nothing to build with."""
    missing = cannot_start(boards=False, kwok=True)
    if missing is not None:
        leave_out(missing)
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in (*PROGRAMS, "kwok"):
        (assets / name).symlink_to(program(name))
    # Without a path there is no runc, so no real boards, and no Go.
    return {"KUBEBUILDER_ASSETS": str(assets), "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "nowhere"}


async def test_the_programs_of_kubebuilder_assets_are_used_and_none_is_built(
    elsewhere: Mapping[str, str], tmp_path: Path
) -> None:
    with asking("scheduler=False", elsewhere) as asked:
        async with client_of(asked.kubeconfig) as client:
            assert (await client.get("/readyz")).text == "ok"
        started = [command_line(process).partition(" ")[0] for process in asked.started()]
        given = elsewhere["KUBEBUILDER_ASSETS"]
        assert {f"{given}/{name}" for name in ("etcd", "kube-apiserver")} <= set(started)
        assert not (tmp_path / "cache").exists()


async def test_an_existing_cluster_is_used_only_where_that_is_allowed_and_is_never_broken(
    control_plane: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    monkeypatch.delenv(GIVEN, raising=False)
    assert given_kubeconfig() is None
    monkeypatch.setenv(GIVEN, "1")
    kubeconfig = given_kubeconfig()
    assert kubeconfig is not None
    async with client_of(kubeconfig) as client:
        assert (await client.get("/readyz")).text == "ok"
    given = Cluster(kubeconfig, None, None)
    assert not given.ours
    with pytest.raises(ClusterFailed):
        given.restart_api_server()


async def test_of_several_clusters_the_one_of_the_context_is_used(
    control_plane: Cluster, tmp_path: Path
) -> None:
    content = yaml.safe_load(control_plane.kubeconfig.read_text(encoding="utf-8"))
    content["clusters"].insert(0, {"name": "other", "cluster": {"server": "https://127.0.0.1:1"}})
    content["users"].insert(0, {"name": "other", "user": {"token": "other"}})
    several = tmp_path / "several"
    several.write_text(yaml.safe_dump(content), encoding="utf-8")
    async with client_of(several) as client:
        assert (await client.get("/api/v1/nodes")).is_success


def test_on_an_existing_cluster_what_breaks_it_is_left_out_and_no_other_is_started(
    control_plane: Cluster, tmp_path: Path
) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    # With an empty cache and no path, a cluster of our own could not even be started.
    given = {"KUBECONFIG": str(control_plane.kubeconfig), GIVEN: "1", "XDG_CACHE_HOME": str(tmp_path)}
    given["PATH"] = "nowhere"
    files = [f"tests/e2e/{name}" for name in ("test_boards.py", "test_ending.py")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env={**kept, **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    lines = [each for each in done.stdout.splitlines() if each.startswith("SKIPPED")]
    assert lines
    assert all(each.endswith(f"missing: {OWN}") for each in lines)


def there(file: Path) -> bool:
    return file.exists()


@pytest.fixture
def tool(elsewhere: Mapping[str, str], tmp_path: Path) -> Iterator["Tool"]:
    """The program behind `make cluster-up` and `make cluster-down`; what it brought up is taken down."""
    found = Tool(elsewhere, tmp_path / "said")
    yield found
    found.run("down")


class Tool:
    """`python -m hack.cluster`."""

    def __init__(self, environment: Mapping[str, str], said: Path) -> None:
        self._environment = {**os.environ, **environment}
        self._said = said

    def run(self, word: str) -> tuple[int, str]:
        """Run it; its exit code, and what it told a program that reads it."""
        with self._said.open("ab") as said:  # a pipe would stay open as long as the cluster
            done = subprocess.run(
                [sys.executable, "-m", "hack.cluster", word],
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                check=False,
            )
        return done.returncode, done.stdout


async def test_a_cluster_stays_up_until_it_is_taken_down_and_then_nothing_is_left(
    tool: Tool, tmp_path: Path
) -> None:
    code, said = tool.run("up")
    assert code == 0
    kubeconfig = Path(said.strip().removeprefix("export KUBECONFIG="))
    async with client_of(kubeconfig) as client:
        assert (await client.get("/readyz")).text == "ok"
        assert (await client.get("/api/v1/nodes")).is_success
    started = mentioning(str(tmp_path))
    assert len(started) >= len(PROGRAMS)
    assert tool.run("up") == (1, "")  # there is one already
    assert tool.run("down") == (0, "")

    async def all_gone() -> bool:
        return not any(process.alive for process in started) and not there(kubeconfig)

    await until(all_gone, PATIENCE)
    assert tool.run("down") == (0, "")  # there is none
