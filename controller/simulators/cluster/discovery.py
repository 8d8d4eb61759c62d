"""The fixed answers: version, health, discovery, and the review of one's own rights."""

import json

from controller.simulators.cluster.access import Account
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


def review(account: Account, body: bytes) -> Json:
    """Say whether the caller may do what it asks about."""
    try:
        asked = json.loads(body)
        spec = dict(asked["spec"])
        about = {key: str(value) for key, value in (spec.get("resourceAttributes") or {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad_request("the object provided is no SelfSubjectAccessReview") from error
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    allowed = account.may(about.get("verb", ""), resource, about.get("namespace", ""))
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": {"allowed": allowed},
    }
