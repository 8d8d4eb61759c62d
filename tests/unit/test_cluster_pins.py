"""What a test cluster is built from is pinned, checked by hash, and does not say where it comes from."""

import re

import pytest

from hack.cluster.programs import MODULES, SOURCES

SUM = re.compile(r"\S+ v\S+ h1:[A-Za-z0-9+/]{43}=")


@pytest.mark.parametrize("name", SOURCES)
def test_every_program_has_a_version_and_is_a_tool_of_its_module(name: str) -> None:
    source = SOURCES[name]
    assert re.fullmatch(r"v\d+\.\d+\.\d+", source.version)
    assert source.package in (source.folder / "go.mod").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", sorted(folder.name for folder in MODULES.iterdir()))
def test_sums_are_names_versions_and_hashes_only(module: str) -> None:
    lines = (MODULES / module / "go.sum").read_text(encoding="utf-8").splitlines()
    assert lines
    assert [line for line in lines if not SUM.fullmatch(line)] == []


def test_kubernetes_and_its_parts_are_of_one_release() -> None:
    minor = SOURCES["kubelet"].version.removeprefix("v1.")
    text = (MODULES / "kubernetes" / "go.mod").read_text(encoding="utf-8")
    replaced = re.findall(r"^\t(\S+) => (\S+) (\S+)$", text, re.MULTILINE)
    assert len(replaced) > 20
    assert {(name == same, version) for name, same, version in replaced} == {(True, f"v0.{minor}")}
