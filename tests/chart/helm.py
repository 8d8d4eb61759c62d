"""Helm, and the chart as it renders: objects by kind and name."""

import subprocess
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hack.cluster.programs import program

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "switchboard"
SCENARIOS = sorted((CHART / "ci").glob("*-values.yaml"))
VERSION = "1.36.0"  # of Kubernetes; helm itself assumes an old one
RELEASE, NAMESPACE = "boards", "switchboard"

Json = dict[str, Any]

LEAST: Json = {
    "image": {"repository": "registry.example/switchboard"},
    "config": {
        "github": {
            "apps": {"User": {"appId": "222", "privateKeyFile": "/etc/switchboard/keys/user.pem"}},
        },
        "pools": [{"name": "rv1", "labels": ["riscv"], "image": "registry.example/runner:1"}],
    },
    "secrets": {"databaseUrl": "postgresql://u:p@db/d", "webhookSecret": "hook"},
    "appKeys": {"files": {"user.pem": "a key"}},
}
"""The least that has to be given."""


def run(*arguments: str, given: str | None = None, cluster: Path | None = None) -> tuple[int, str]:
    """Run helm; its exit code, and all it said."""
    where = ["--kubeconfig", str(cluster)] if cluster else []
    command = [str(program("helm")), *arguments, *where]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def values(*more: Mapping[str, Any]) -> str:
    """The least values with these changes, as YAML; None takes one out."""
    merged: Json = {}
    for each in (LEAST, *more):
        _merge(merged, deepcopy(each))  # or the next one would change what the test handed in
    return yaml.safe_dump(merged)


def template(given: str, *more: str, release: str = RELEASE) -> tuple[int, str]:
    """Render the chart with these values."""
    where = ["--namespace", NAMESPACE, "--kube-version", VERSION, *more]
    return run("template", release, str(CHART), *where, "--values", "-", given=given)


@cache
def rendered_text(given: str, release: str) -> str:
    """The manifest, which must come out."""
    code, said = template(given, release=release)
    assert code == 0, said
    return said


class Rendered:
    """The objects of one rendering."""

    def __init__(self, given: str, release: str = RELEASE) -> None:
        text = rendered_text(given, release)
        self.objects: list[Json] = [each for each in yaml.safe_load_all(text) if each]

    def kinds(self) -> set[str]:
        """Which kinds there are."""
        return {each["kind"] for each in self.objects}

    def all(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, name: str = "") -> Json:
        """The object of a kind whose name ends so."""
        (found,) = [each for each in self.all(kind) if each["metadata"]["name"].endswith(name)]
        return found

    def pod(self, component: str) -> Json:
        """The pod template of a component, or the pod itself."""
        for each in self.objects:
            template = each.get("spec", {}).get("template", each if each["kind"] == "Pod" else None)
            if template and _component(template) == component:
                found: Json = template
                return found
        raise AssertionError(f"no pods of {component}")

    def components(self) -> set[str]:
        """The components that have pods."""
        templates = [each["spec"]["template"] for each in self.objects if "template" in each.get("spec", {})]
        return {_component(each) for each in templates}


def render(*more: Mapping[str, Any]) -> Rendered:
    """The chart with the least values and these changes."""
    return Rendered(values(*more))


def scenario(path: Path) -> Rendered:
    """The chart with the values of a scenario."""
    return Rendered(path.read_text(encoding="utf-8"))


def refusal(*more: Mapping[str, Any]) -> str:
    """What helm says to values that it must refuse."""
    code, said = template(values(*more))
    assert code != 0, "these values were accepted"
    return said


def env_of(container: Json) -> dict[str, Json]:
    """The environment of a container by name."""
    return {each["name"]: each for each in container.get("env", [])}


def rules_of(rendered: Rendered, kind: str, namespace: str | None = None) -> set[tuple[str, str]]:
    """What a Role of a namespace or a ClusterRole grants to the program: verb and resource; hooks have their own."""
    roles: Sequence[Json] = [
        each
        for each in rendered.all(kind)
        if "annotations" not in each["metadata"] and each["metadata"].get("namespace") == namespace
    ]
    return {
        (verb, resource)
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def _component(template: Json) -> str:
    return str(template["metadata"]["labels"].get("app.kubernetes.io/component", ""))


def _merge(into: Json, more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value
