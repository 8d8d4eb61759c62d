"""Kubernetes objects as JSON: the resources this simulator serves, copying, times, conditions.

Stands below everything else in this package. Stored objects are never changed in place: whoever wants to
change one takes a `clone`, so histories and watch events may share them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

CORE_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Resource:
    """One row of the core API."""

    plural: str
    kind: str
    namespaced: bool = True
    has_status: bool = False
    verbs: tuple[str, ...] = CORE_VERBS
    api_version: str = "v1"


PODS = Resource("pods", "Pod", has_status=True)
SECRETS = Resource("secrets", "Secret")
EVENTS = Resource("events", "Event")
NODES = Resource("nodes", "Node", namespaced=False, has_status=True)
NAMESPACES = Resource("namespaces", "Namespace", namespaced=False, verbs=("get", "list", "watch"))
RESOURCES = {each.plural: each for each in (PODS, SECRETS, EVENTS, NODES, NAMESPACES)}


def clone(value: Any) -> Any:
    """Copy JSON deeply; much faster than copy.deepcopy."""
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clone(item) for item in value]
    return value


def timestamp(moment: datetime) -> str:
    """A time as the API writes it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(text: str) -> datetime:
    """Read a time that the API wrote."""
    return datetime.fromisoformat(text)


def with_kind(resource: Resource, obj: Json) -> Json:
    """A stored object as it is answered alone or in a watch; items of lists carry no kind."""
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}


def key_of(obj: Json) -> tuple[str, str]:
    """Namespace (empty for nodes) and name."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def uid_of(obj: Json) -> str:
    """The uid."""
    return str(obj["metadata"]["uid"])


def phase_of(pod: Json) -> str:
    """The pod's phase."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def is_terminal(pod: Json) -> bool:
    """Whether the containers have ended for good."""
    return phase_of(pod) in TERMINAL


def node_of(pod: Json) -> str:
    """The node the pod is bound to, or an empty text."""
    return str(pod["spec"].get("nodeName") or "")


def condition_of(obj: Json, kind: str) -> Json:
    """The condition of that type, or an empty one."""
    for condition in obj.get("status", {}).get("conditions") or ():
        if condition["type"] == kind:
            return dict(condition)
    return {}


def set_condition(
    status: Json, kind: str, value: str, now: datetime, *, reason: str = "", message: str = ""
) -> None:
    """Write a condition into a status that may be changed; its time moves only with its value."""
    conditions: list[Json] = status.setdefault("conditions", [])
    fresh: Json = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": timestamp(now)}
    if reason:
        fresh["reason"] = reason
    if message:
        fresh["message"] = message
    for index, old in enumerate(conditions):
        if old["type"] == kind:
            if old["status"] == value:
                fresh["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[index] = fresh
            return
    conditions.append(fresh)


def owner_uids(obj: Json) -> Iterable[str]:
    """The uids of the object's owners."""
    return (str(owner.get("uid")) for owner in obj["metadata"].get("ownerReferences") or ())
