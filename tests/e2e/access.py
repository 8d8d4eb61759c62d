"""A service account with the rights that the controller is granted, and its kubeconfig."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import yaml

from hack.cluster.programs import SOURCES, program

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "switchboard"
WITHOUT_CHART = ROOT / "tests" / "e2e" / "rbac.yaml"
ACCOUNT = "switchboard"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LIFE = 86_400  # seconds


@cache
def granted_rules(chart: Path) -> dict[str, Any]:
    """The rules of the role and the cluster role that the chart makes."""
    if not chart.is_dir():
        rules: dict[str, Any] = yaml.safe_load(WITHOUT_CHART.read_text(encoding="utf-8"))
        return rules
    values = chart / "ci" / "production-values.yaml"
    command = [str(program("helm")), "template", "switchboard", str(chart), "--values", str(values)]
    command += ["--kube-version", SOURCES["kubelet"].version, "--show-only", "templates/rbac.yaml"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kinds = {each["kind"]: each for each in yaml.safe_load_all(made) if each}
    return {"role": kinds["Role"]["rules"], "clusterRole": kinds["ClusterRole"]["rules"]}


async def grant(client: httpx.AsyncClient, namespace: str) -> str:
    """Make the account with its roles, and give its token."""
    rules = granted_rules(CHART)
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    wide = f"{namespace}-{ACCOUNT}"
    for path, body in (
        (accounts, {"metadata": {"name": ACCOUNT}}),
        (f"{RBAC}/namespaces/{namespace}/roles", {"metadata": {"name": ACCOUNT}, "rules": rules["role"]}),
        (f"{RBAC}/namespaces/{namespace}/rolebindings", _binding("Role", ACCOUNT, namespace)),
        (f"{RBAC}/clusterroles", {"metadata": {"name": wide}, "rules": rules["clusterRole"]}),
        (f"{RBAC}/clusterrolebindings", _binding("ClusterRole", wide, namespace)),
    ):
        (await client.post(path, json=body)).raise_for_status()
    wanted = {"spec": {"expirationSeconds": LIFE}}
    answer = await client.post(f"{accounts}/{ACCOUNT}/token", json=wanted)
    return str(answer.raise_for_status().json()["status"]["token"])


async def revoke(client: httpx.AsyncClient, namespace: str) -> None:
    """Remove what is not in the namespace; the rest goes with it."""
    wide = f"{namespace}-{ACCOUNT}"
    for kind in ("clusterroles", "clusterrolebindings"):
        await client.delete(f"{RBAC}/{kind}/{wide}")


def with_token(kubeconfig: Path, token: str, file: Path) -> Path:
    """A copy of a kubeconfig that holds this token instead of the admin's credentials."""
    content: dict[str, Any] = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    for user in content["users"]:
        user["user"] = {"token": token}
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def _binding(kind: str, role: str, namespace: str) -> dict[str, Any]:
    return {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
