"""The two API servers that the suite is held against, behind one face: the simulated one and a real one."""

import base64
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import httpx
import yaml

from controller.simulators.cluster import ClusterSimulator
from controller.simulators.cluster.access import Rule
from hack.cluster.client import Cluster as RealCluster
from tests.contract.cluster.objects import Json
from tests.waiting import until

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces"


class Server(Protocol):
    """What a test can do to an API server besides speaking to it."""

    async def compact(self) -> None:
        """Make it forget everything but the present."""

    async def token(self, namespace: str, verbs: Sequence[str], resources: Sequence[str]) -> str:
        """The token of someone who may do only this, in this namespace."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The simulator."""

    sim: ClusterSimulator

    async def compact(self) -> None:
        """Make it forget everything but the present."""
        self.sim.compact()

    async def token(self, namespace: str, verbs: Sequence[str], resources: Sequence[str]) -> str:
        """The token of someone who may do only this."""
        user = f"system:serviceaccount:{namespace}:limited"
        self.sim.add_account("limited", user, [Rule(verbs, resources, namespace)])
        return "limited"


@dataclass(frozen=True, slots=True)
class Real:
    """A kube-apiserver."""

    cluster: RealCluster
    client: httpx.AsyncClient

    async def compact(self) -> None:
        """Make etcd forget everything but the present, and the API server its cache."""
        self.cluster.compact()
        self.cluster.restart_api_server()

    async def token(self, namespace: str, verbs: Sequence[str], resources: Sequence[str]) -> str:
        """The token of a service account with one role."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        named: Json = {"metadata": {"name": "limited"}}
        rule = {"apiGroups": [""], "verbs": list(verbs), "resources": list(resources)}
        subject = {"kind": "ServiceAccount", "name": "limited", "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited"}
        for path, body in (
            (accounts, named),
            (f"{ROLES}/{namespace}/roles", {**named, "rules": [rule]}),
            (f"{ROLES}/{namespace}/rolebindings", {**named, "roleRef": role, "subjects": [subject]}),
        ):
            (await self.client.post(path, json=body)).raise_for_status()
        answer = await self.client.post(f"{accounts}/limited/token", json={"spec": {}})
        token = str(answer.raise_for_status().json()["status"]["token"])
        for verb in verbs:
            for resource in resources:
                await until(partial(self._may, token, namespace, verb, resource))
        return token

    async def _may(self, token: str, namespace: str, verb: str, resource: str) -> bool:
        """Whether the API server has heard of the right by now."""
        kind, _, part = resource.partition("/")
        asked = {"namespace": namespace, "verb": verb, "resource": kind, "subresource": part}
        headers = {"authorization": f"Bearer {token}"}
        body = {"spec": {"resourceAttributes": asked}}
        answer = await self.client.post(REVIEWS, json=body, headers=headers)
        return bool(answer.raise_for_status().json()["status"]["allowed"])


def client_of(kubeconfig: Path) -> httpx.AsyncClient:
    """A client with the rights of a kubeconfig's context: a token or a certificate, in files or the text itself."""
    content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    context = _named(content, "context", content["current-context"])
    cluster, user = (_named(content, kind, context[kind]) for kind in ("cluster", "user"))
    trusted = ssl.create_default_context(cadata=_part(cluster, "certificate-authority"))
    if "client-key" in user or "client-key-data" in user:
        with tempfile.NamedTemporaryFile("w") as pair:
            pair.write(_part(user, "client-certificate") + _part(user, "client-key"))
            pair.flush()
            trusted.load_cert_chain(pair.name)
    headers = {"authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return httpx.AsyncClient(base_url=cluster["server"], headers=headers, verify=trusted, timeout=20)


def _named(content: Json, kind: str, name: str) -> Json:
    (found,) = [each[kind] for each in content[f"{kind}s"] if each["name"] == name]
    return dict(found)


def _part(holder: Json, name: str) -> str:
    if name in holder:
        return Path(holder[name]).read_text(encoding="utf-8")
    return base64.b64decode(holder[f"{name}-data"]).decode()
