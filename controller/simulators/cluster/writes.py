"""Changing objects as the API server changes them: create, update, patch, delete.

Stands between `api`, which reads requests, and `store`. Nothing here awaits, so an effect is whole or not there
at all. What a change sets in motion afterwards is the business of scheduler, kubelets and garbage collector.
"""

import json
import random
import uuid
from datetime import timedelta

from controller.ports import Clock
from controller.simulators.cluster.decode import check_types, read_object, with_defaults
from controller.simulators.cluster.objects import (
    NAMESPACES,
    NODES,
    PODS,
    Json,
    Resource,
    clone,
    is_terminal,
    key_of,
    node_of,
    timestamp,
    uid_of,
)
from controller.simulators.cluster.patches import apply_patch
from controller.simulators.cluster.requests import Ask
from controller.simulators.cluster.status import bad_request, invalid, modified, wrong_uid
from controller.simulators.cluster.store import Store
from controller.simulators.cluster.validation import mistakes, update_mistakes

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
FIXED_METADATA = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
DEFAULT_GRACE = 30


class Writes:
    """The writing half of the API."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng

    def create(self, ask: Ask) -> Json:
        """POST: 201, or 400, 404, 409, 422."""
        return self.add(ask.resource, ask.place, read_object(ask.resource, ask.body), dry_run=ask.dry_run)

    def add(self, resource: Resource, namespace: str, obj: Json, *, dry_run: bool = False) -> Json:
        """Give an object all that the server gives a new one, and store it."""
        fresh = with_defaults(resource, obj)
        metadata = fresh.setdefault("metadata", {})
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        self._place(resource, namespace, metadata)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + "".join(self._rng.choices(ALPHABET, k=5))
        found = mistakes(resource, fresh)
        if found:
            raise invalid(resource, str(metadata.get("name", "")), found)
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(field, None)
        _drop_empty(metadata)
        metadata["uid"] = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = timestamp(self._clock.now())
        if resource is PODS:
            metadata["generation"] = 1
            fresh["status"] = {"phase": "Pending", "qosClass": _quality(fresh["spec"])}
        if resource is NODES:
            fresh.setdefault("spec", {})
            fresh.setdefault("status", {})
        if dry_run:
            self._store.check_free(resource, key_of(fresh))
            return fresh
        return self._store.create(resource, fresh)

    def update(self, ask: Ask) -> Json:
        """PUT: the whole object."""
        old = self._store.get(ask.resource, ask.place, ask.name or "")
        return self._change(ask, old, read_object(ask.resource, ask.body))

    def patch(self, ask: Ask) -> Json:
        """PATCH: 200, or 400, 404, 409, 415, 422."""
        old = self._store.get(ask.resource, ask.place, ask.name or "")
        new = apply_patch(old, ask.content_type, ask.body)
        for field in ("kind", "apiVersion"):
            new.pop(field, None)
        check_types(ask.resource, new)
        return self._change(ask, old, new)

    def delete(self, ask: Ask) -> tuple[Json, bool]:
        """DELETE one: the object as it was or now is, and whether it is gone already."""
        options = _options(ask)
        return self._delete(ask, self._store.get(ask.resource, ask.place, ask.name or ""), options)

    def delete_all(self, ask: Ask, items: list[Json]) -> list[Json]:
        """DELETE a collection."""
        options = _options(ask)
        return [self._delete(ask, obj, options)[0] for obj in items]

    def remove_pod(self, pod: Json) -> None:
        """Delete a pod with its own grace, as a controller inside the cluster does."""
        self._delete(Ask("delete", PODS, key_of(pod)[0], key_of(pod)[1]), pod, {})

    def _place(self, resource: Resource, namespace: str, metadata: Json) -> None:
        if not resource.namespaced:
            metadata.pop("namespace", None)
            return
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        self._store.get(NAMESPACES, "", namespace)

    def _change(self, ask: Ask, old: Json, new: Json) -> Json:
        resource, name = ask.resource, ask.name or ""
        fresh = with_defaults(resource, new)
        metadata = fresh.setdefault("metadata", {})
        if metadata.get("name", name) != name:
            raise bad_request(
                f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})"
            )
        if (
            metadata.get("resourceVersion", old["metadata"]["resourceVersion"])
            != old["metadata"]["resourceVersion"]
        ):
            raise modified(resource, name)
        if metadata.get("uid", uid_of(old)) != uid_of(old):
            raise wrong_uid(resource, name, str(metadata["uid"]), uid_of(old))
        self._keep_fixed(ask, old, fresh)
        found = update_mistakes(resource, old, fresh)
        if found:
            raise invalid(resource, name, found)
        if resource is PODS and fresh["spec"] != old["spec"]:
            metadata["generation"] += 1
        return fresh if ask.dry_run else self._store.replace(resource, fresh)

    def _keep_fixed(self, ask: Ask, old: Json, fresh: Json) -> None:
        """Put back what a request cannot change, as the server does without a word."""
        metadata = fresh["metadata"]
        metadata["name"], metadata["resourceVersion"] = ask.name, old["metadata"]["resourceVersion"]
        if ask.resource.namespaced:
            metadata["namespace"] = ask.place
        for field in FIXED_METADATA:
            metadata.pop(field, None)
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        _drop_empty(metadata)
        if not ask.resource.has_status:
            return
        if ask.subresource == "status":
            fresh["spec"] = clone(old["spec"])
        else:
            fresh["status"] = clone(old.get("status", {}))

    def _delete(self, ask: Ask, obj: Json, options: Json) -> tuple[Json, bool]:
        resource, (namespace, name) = ask.resource, key_of(obj)
        conditions = options.get("preconditions") or {}
        if conditions.get("uid", uid_of(obj)) != uid_of(obj):
            raise wrong_uid(resource, name, str(conditions["uid"]), uid_of(obj))
        version = obj["metadata"]["resourceVersion"]
        if conditions.get("resourceVersion", version) != version:
            raise modified(resource, name)
        grace = self._grace(resource, obj, options)
        if ask.dry_run:
            return obj, grace == 0
        if resource is not PODS:
            return self._store.remove(resource, (namespace, name)) or obj, True
        if grace >= obj["metadata"].get("deletionGracePeriodSeconds", grace + 1):
            return obj, False
        marked = self._mark_deleted(obj, grace)
        return (marked, False) if grace else (self._store.remove(resource, (namespace, name)) or marked, True)

    def _mark_deleted(self, obj: Json, grace: int) -> Json:
        """A pod is marked first, also one that goes at once: watchers see both."""
        fresh = clone(obj)
        begun = fresh["metadata"].get("deletionTimestamp") is not None
        due = self._clock.now() + timedelta(seconds=grace)
        fresh["metadata"]["deletionGracePeriodSeconds"] = grace
        fresh["metadata"]["deletionTimestamp"] = timestamp(due)
        if not begun:
            fresh["metadata"]["generation"] += 1
        return self._store.replace(PODS, fresh)

    @staticmethod
    def _grace(resource: Resource, obj: Json, options: Json) -> int:
        """Only a pod that a kubelet has, and that still runs, is given time."""
        if resource is not PODS or not node_of(obj) or is_terminal(obj):
            return 0
        wanted = options.get("gracePeriodSeconds")
        if wanted is None:
            wanted = obj["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        return int(wanted) if wanted >= 0 else 1


def _drop_empty(metadata: Json) -> None:
    """Leave out what is empty, as encoding does."""
    for field in ("labels", "annotations", "ownerReferences", "finalizers"):
        if not metadata.get(field):
            metadata.pop(field, None)


def _options(ask: Ask) -> Json:
    """The DeleteOptions, of which the query may hold a part."""
    options: Json = {}
    if ask.body:
        try:
            options = json.loads(ask.body)
        except ValueError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    grace = ask.number("gracePeriodSeconds")
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return options


def _quality(spec: Json) -> str:
    """The quality-of-service class, for which only cpu and memory count."""
    asked = [
        (container.get("resources") or {}).get(part) or {}
        for container in spec["containers"]
        for part in ("requests", "limits")
    ]
    counted = [{key: value for key, value in each.items() if key in ("cpu", "memory")} for each in asked]
    if not any(counted):
        return "BestEffort"
    pairs = zip(counted[::2], counted[1::2], strict=True)
    full = all(len(limits) == 2 and requests == limits for requests, limits in pairs)
    return "Guaranteed" if full else "Burstable"
