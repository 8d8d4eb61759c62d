"""Objects to send, with defaults that show only what a test is about."""

from typing import Any

Json = dict[str, Any]
IMAGE = "example.com/runner:1"
RESOURCE = "riseproject.com/runner"
BOARD = {"riseproject.dev/board": "rv1"}


def a_pod(name: str, *, labels: Json | None = None, slots: int = 0, image: str = IMAGE, **spec: Any) -> Json:
    """A pod of one container."""
    container: Json = {"name": "runner", "image": image}
    if slots:
        container["resources"] = {"limits": {RESOURCE: str(slots)}}
    if "env" in spec:
        container["env"] = spec.pop("env")
    full = {"restartPolicy": "Never", "containers": [container], **spec}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": full,
    }


def a_secret(name: str, *, labels: Json | None = None, owner: Json | None = None, **data: str) -> Json:
    """A Secret with plain data."""
    metadata: Json = {"name": name, "labels": labels or {}}
    if owner is not None:
        metadata["ownerReferences"] = [owner_of(owner)]
    return {"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "stringData": data}


def owner_of(pod: Json) -> Json:
    """A reference to an owning pod."""
    metadata = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}


def container_state(pod: Json) -> Json:
    """The state of the pod's only container."""
    state: Json = pod["status"]["containerStatuses"][0]["state"]
    return state
