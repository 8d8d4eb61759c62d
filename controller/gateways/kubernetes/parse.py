"""Raw JSON of the API server → the domain's sightings. Pure, and tolerant: a missing field is a missing fact.

Stands between `watch` and `gateway`, which fetch, and everything that decides. Raw dictionaries end here.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from controller.domain.sightings import Node, Pod, PodPhase

Raw = Mapping[str, Any]

ADVERTISED = "riseproject.dev/advertised-by"  # on nodes whose slot we offer; the value is the installation
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PHASES = {phase.value: phase for phase in PodPhase}
_NOTHING: Raw = {}


def parse_pod(raw: Raw, resource: str) -> Pod:
    """Read a pod; `resource` is the extended resource whose requests are its slots."""
    metadata = _map(raw, "metadata")
    spec = _map(raw, "spec")
    status = _map(raw, "status")
    state = _map(main_container_status(raw), "state")
    waiting = _map(state, "waiting")
    ended = _map(state, "terminated")
    started = _map(state, "running").get("startedAt") or ended.get("startedAt")
    return Pod(
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        phase=_PHASES.get(status.get("phase", ""), PodPhase.UNKNOWN),
        created_at=parse_time(metadata.get("creationTimestamp")) or EPOCH,
        resource_version=parse_version(metadata.get("resourceVersion")),
        labels=_map(metadata, "labels"),
        annotations=_map(metadata, "annotations"),
        node=spec.get("nodeName") or None,
        node_selector=_map(spec, "nodeSelector"),
        avoids=_avoided(_map(_map(spec, "affinity"), "nodeAffinity")),
        slots=_requested(spec, resource),
        accepted_at=parse_time(status.get("startTime")),
        running_at=parse_time(started),
        finished_at=parse_time(ended.get("finishedAt")),
        deleting_since=parse_time(metadata.get("deletionTimestamp")),
        deadline_seconds=spec.get("activeDeadlineSeconds"),
        waiting=waiting.get("reason") or None,
        waiting_message=waiting.get("message") or None,
        reason=status.get("reason") or ended.get("reason") or None,
        message=status.get("message") or ended.get("message") or None,
        exit_code=ended.get("exitCode"),
        unschedulable=_unschedulable(status),
    )


def parse_node(raw: Raw, resource: str) -> Node:
    """Read a node; `schedulable` is the cordon alone, taints are kept for whoever knows the tolerations."""
    metadata = _map(raw, "metadata")
    spec = _map(raw, "spec")
    status = _map(raw, "status")
    taints = tuple(
        (str(taint.get("key", "")), str(taint.get("value", "")), str(taint.get("effect", "")))
        for taint in _list(spec, "taints")
    )
    return Node(
        name=str(metadata.get("name", "")),
        labels=_map(metadata, "labels"),
        ready=_condition(status, "Ready").get("status") == "True",
        schedulable=not spec.get("unschedulable", False),
        unreachable=any(key == UNREACHABLE_TAINT for key, _, _ in taints),
        slots=parse_count(_map(status, "allocatable").get(resource)),
        taints=taints,
        capacity=parse_count(_map(status, "capacity").get(resource)),
        advertised_by=_map(metadata, "annotations").get(ADVERTISED),
    )


def parse_time(text: object) -> datetime | None:
    """Read an RFC 3339 time; None when there is none or it cannot be read."""
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_version(text: object) -> int:
    """Read a resource version; officially opaque, in fact etcd's revision, and only then comparable."""
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def parse_count(quantity: object) -> int:
    """Read the quantity of an extended resource, which is always a whole number."""
    text = str(quantity)
    return int(text) if text.isdecimal() else 0


def main_container_status(raw: Raw) -> Raw:
    """The status of the pod's first container, wherever an injected sidecar put it in the list."""
    statuses = _list(_map(raw, "status"), "containerStatuses")
    wanted = main_container(raw)
    for status in statuses:
        if status.get("name") == wanted:
            return status
    return statuses[0] if statuses else _NOTHING


def main_container(raw: Raw) -> str | None:
    """The name of the pod's first container."""
    containers = _list(_map(raw, "spec"), "containers")
    return str(containers[0].get("name", "")) if containers else None


def _avoided(affinity: Raw) -> frozenset[str]:
    """The nodes that every one of the terms excludes by name: a pod needs to meet only one of them."""
    terms = _list(_map(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms")
    excluded = [
        {
            str(node)
            for field in _list(term, "matchFields")
            if (field.get("key"), field.get("operator")) == ("metadata.name", "NotIn")
            for node in field.get("values") or ()
        }
        for term in terms
    ]
    return frozenset(set.intersection(*excluded)) if excluded else frozenset()


def _requested(spec: Raw, resource: str) -> int:
    """Containers run together, init containers one by one before them: the scheduler takes the greater."""
    together = sum(_asks(container, resource) for container in _list(spec, "containers"))
    alone = max((_asks(container, resource) for container in _list(spec, "initContainers")), default=0)
    return max(together, alone)


def _asks(container: Raw, resource: str) -> int:
    resources = _map(container, "resources")
    limit = _map(resources, "limits").get(resource)
    return parse_count(_map(resources, "requests").get(resource, limit))


def _unschedulable(status: Raw) -> str | None:
    condition = _condition(status, "PodScheduled")
    if condition.get("status") != "False":
        return None
    return condition.get("message") or condition.get("reason") or "not scheduled"


def _condition(status: Raw, kind: str) -> Raw:
    for condition in _list(status, "conditions"):
        if condition.get("type") == kind:
            return condition
    return _NOTHING


def _map(raw: Raw, key: str) -> Raw:
    value = raw.get(key)
    return value if isinstance(value, Mapping) else _NOTHING


def _list(raw: Raw, key: str) -> Sequence[Raw]:
    value = raw.get(key)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
