"""The way to the API server."""

from pathlib import Path

import pytest

from controller.errors import ConfigError
from controller.gateways.kubernetes import connect

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: abc}}]
"""


async def test_a_kubeconfig_file_is_used(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    async with await connect(file) as client:
        assert client.configuration.host == "http://127.0.0.1:1"


async def test_the_environment_names_the_file_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(file))
    async with await connect(None) as client:
        assert client.configuration.host == "http://127.0.0.1:1"


@pytest.mark.parametrize("content", [None, "just words", "a: [", "{}"])
async def test_a_file_that_leads_nowhere_is_a_mistake_in_the_settings(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match="leads to no API server"):
        await connect(file)


async def test_a_broken_file_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("users: [{token: hunter2")
    with pytest.raises(ConfigError) as caught:
        await connect(file)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__
