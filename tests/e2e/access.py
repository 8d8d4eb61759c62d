"""The controller's rights: the service account and roles that the chart renders, and a kubeconfig with its token."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.chart.helm import CHART, VERSION, Json, run, values
from tests.chart.objects import place_of

RELEASE = "switchboard"
LIFE = 86_400  # seconds


def render_access(namespace: str) -> list[Json]:
    """What the chart makes for a release whose runners are in its own namespace: an account, roles and bindings."""
    given = values({"config": {"kubernetes": {"namespace": namespace}}, "runnerNamespace": {"create": False}})
    where = ["--namespace", namespace, "--kube-version", VERSION, "--show-only", "templates/rbac.yaml"]
    code, said = run("template", RELEASE, str(CHART), *where, "--values", "-", given=given)
    assert code == 0, said
    return [each for each in yaml.safe_load_all(said) if each]


async def grant(client: httpx.AsyncClient, namespace: str) -> tuple[str, list[Json]]:
    """Make what the chart renders; the account's token, and what lies outside the namespace."""
    made = await asyncio.to_thread(render_access, namespace)
    for obj in made:
        (await client.post(place_of(obj), json=obj)).raise_for_status()
    (account,) = [obj for obj in made if obj["kind"] == "ServiceAccount"]
    wanted = {"spec": {"expirationSeconds": LIFE}}
    answer = await client.post(f"{place_of(account)}/{account['metadata']['name']}/token", json=wanted)
    wide = [obj for obj in made if "namespace" not in obj["metadata"]]
    return str(answer.raise_for_status().json()["status"]["token"]), wide


async def revoke(client: httpx.AsyncClient, wide: list[Json]) -> None:
    """Remove what is not in the namespace; the rest goes with it."""
    for obj in wide:
        await client.delete(f"{place_of(obj)}/{obj['metadata']['name']}")


def with_token(kubeconfig: Path, token: str, file: Path) -> Path:
    """A copy of a kubeconfig that holds this token instead of the admin's credentials."""
    content: dict[str, Any] = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    for user in content["users"]:
        user["user"] = {"token": token}
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file
