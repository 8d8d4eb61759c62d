"""The way that every pod of the chart takes to the API server: its own account, as the kubelet lays it before it."""

import base64
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import certifi
import pytest
import yaml

from controller.errors import ClusterForbidden, ClusterUnavailable
from controller.gateways.kubernetes.connection import ACCOUNT, connect
from controller.gateways.kubernetes.wire import Call, Wire, path
from hack.cluster.client import Cluster
from tests.contract.cluster.conftest import Api

DEADLINE = timedelta(seconds=30)
OTHERS = Path(certifi.where()).read_bytes()  # the authorities of the web


@pytest.fixture
async def account(
    control_plane: Cluster, real_api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A pod's surroundings: variables, a token that may list pods, and the cluster's authority."""
    (given,) = yaml.safe_load(control_plane.kubeconfig.read_text(encoding="utf-8"))["clusters"]
    server = urlsplit(given["cluster"]["server"])
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(server.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    monkeypatch.setenv("KUBECONFIG", "/nowhere")  # in a pod nobody asks for it
    token = await real_api.server.token(real_api.namespace, ["list"], ["pods"])
    (tmp_path / "token").write_text(token, encoding="utf-8")
    (tmp_path / "ca.crt").write_bytes(authority_of(given["cluster"]))
    return tmp_path


def authority_of(cluster: dict[str, str]) -> bytes:
    data = cluster.get("certificate-authority-data")
    return base64.b64decode(data) if data else Path(cluster["certificate-authority"]).read_bytes()


def listing(api: Api, plural: str) -> Call:
    return Call(f"list {plural}", "GET", path("namespaces", api.namespace, plural))


async def test_a_pod_reaches_the_api_server_as_its_account(account: Path, real_api: Api) -> None:
    async with await connect(None, account) as client:
        wire = Wire(client, DEADLINE)
        assert (await wire.fetch(listing(real_api, "pods")))["kind"] == "PodList"
        with pytest.raises(ClusterForbidden, match="system:serviceaccount:"):
            await wire.fetch(listing(real_api, "secrets"))


async def test_a_proxy_that_leads_to_github_is_not_asked_for_the_api_server(
    account: Path, real_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    async with await connect(None, account) as client:
        assert (await Wire(client, DEADLINE).fetch(listing(real_api, "pods")))["kind"] == "PodList"


async def test_a_server_that_the_authority_has_not_signed_gets_no_token(account: Path, real_api: Api) -> None:
    (account / "ca.crt").write_bytes(OTHERS)
    async with await connect(None, account) as client:
        with pytest.raises(ClusterUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await Wire(client, DEADLINE).fetch(listing(real_api, "pods"))


def test_the_account_is_where_kubelets_lay_it() -> None:
    assert os.fspath(ACCOUNT) == "/var/run/secrets/kubernetes.io/serviceaccount"
