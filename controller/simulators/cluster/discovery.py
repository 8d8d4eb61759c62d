"""The fixed answers: version, health, discovery, and the review of one's own rights."""

import json
from collections.abc import Collection

from controller.simulators.cluster.objects import RESOURCES, Json
from controller.simulators.cluster.status import bad_request

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0",
    "gitTreeState": "clean",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/riscv64",
}


def _resources() -> list[Json]:
    rows: list[Json] = []
    for each in RESOURCES.values():
        row: Json = {
            "name": each.plural,
            "singularName": each.kind.lower(),
            "namespaced": each.namespaced,
            "kind": each.kind,
            "verbs": list(each.verbs),
        }
        rows.append(row)
        subresources = {"status": ["get", "patch", "update"]} if each.has_status else {}
        if each.plural == "pods":
            subresources["log"] = ["get"]
        rows += [
            {**row, "name": f"{each.plural}/{name}", "verbs": verbs} for name, verbs in subresources.items()
        ]
    return rows


STATIC: dict[str, Json | str] = {
    "/version": VERSION,
    "/healthz": "ok",
    "/livez": "ok",
    "/readyz": "ok",
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": _resources()},
}


def review(body: bytes, denied: Collection[str]) -> Json:
    """Say whether the caller may do what it asks about; whoever has the token may do all that is not denied."""
    try:
        asked = json.loads(body)
        spec = dict(asked["spec"])
        attributes = dict(spec["resourceAttributes"])
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request("the object provided is no SelfSubjectAccessReview") from error
    tail = f"/{attributes['subresource']}" if attributes.get("subresource") else ""
    allowed = f"{attributes.get('verb')} {attributes.get('resource')}{tail}" not in denied
    status: Json = {"allowed": allowed}
    if allowed:
        status["reason"] = "RBAC: allowed by the simulated cluster"
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"creationTimestamp": None},
        "spec": spec,
        "status": status,
    }
