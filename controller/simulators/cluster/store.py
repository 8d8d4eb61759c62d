"""What etcd and the watch cache are: objects, one rising resourceVersion, and every change ever made.

Everything that happens in the simulated cluster is a change here; routes, scheduler, kubelets and the
garbage collector all read and write this store, and none of them calls another.
"""

import asyncio
import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from controller.ports import Clock
from controller.simulators.cluster.objects import RESOURCES, Json, Resource, clone, key_of, timestamp
from controller.simulators.cluster.status import already_exists, not_found, too_old

Key = tuple[str, str]
FIRST_VERSION = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """One watch event; `object` and `previous` are shared and must not be changed."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: Resource
    object: Json
    previous: Json | None
    rv: int
    at: datetime

    @property
    def kind(self) -> str:
        """Pod, Secret, Node …"""
        return self.resource.kind


class Store:
    """All objects, and how they came to be."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[str, dict[Key, Json]] = {name: {} for name in RESOURCES}
        self._changes: dict[str, list[Change]] = {name: [] for name in RESOURCES}
        self._news = {name: asyncio.Event() for name in RESOURCES}
        self.history: list[Change] = []
        self.rv = FIRST_VERSION
        self.compacted = 0
        self.listeners: list[Callable[[Change], None]] = []

    def find(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """One object, or None."""
        return self._objects[resource.plural].get((namespace if resource.namespaced else "", name))

    def get(self, resource: Resource, namespace: str, name: str) -> Json:
        """One object; ApiError 404 without it."""
        found = self.find(resource, namespace, name)
        if found is None:
            raise not_found(resource, name)
        return found

    def all(self, resource: Resource, namespace: str | None = None) -> list[Json]:
        """All objects, in the order of their keys."""
        items = sorted(self._objects[resource.plural].items())
        return [obj for key, obj in items if namespace is None or key[0] == namespace]

    def values(self, resource: Resource) -> Sequence[Json]:
        """All objects in no order worth naming; a copy, so the store may change meanwhile."""
        return list(self._objects[resource.plural].values())

    def check_free(self, resource: Resource, key: Key) -> None:
        """ApiError 409 if the name is taken."""
        if key in self._objects[resource.plural]:
            raise already_exists(resource, key[1])

    def create(self, resource: Resource, obj: Json) -> Json:
        """Store a new object, which the caller gives away."""
        self.check_free(resource, key_of(obj))
        return self._record("ADDED", resource, obj, None)

    def replace(self, resource: Resource, obj: Json) -> Json:
        """Put a changed object, which the caller gives away, in the place of the old one."""
        key = key_of(obj)
        old = self.get(resource, *key)
        if old == obj:
            return old
        return self._record("MODIFIED", resource, obj, old)

    def change(self, resource: Resource, key: Key, mutate: Callable[[Json], None]) -> Json | None:
        """Change a copy of an object and store it; None if there is no such object."""
        old = self.find(resource, *key)
        if old is None:
            return None
        fresh = clone(old)
        mutate(fresh)
        return self.replace(resource, fresh)

    def remove(self, resource: Resource, key: Key) -> Json | None:
        """Take an object away; None if it was gone already."""
        old = self._objects[resource.plural].get(key)
        if old is None:
            return None
        return self._record("DELETED", resource, clone(old), old)

    def changes_after(self, resource: Resource, rv: int) -> int:
        """The index of the first change newer than `rv`; ApiError 410 if it was compacted away."""
        if rv < self.compacted:
            raise too_old(rv, self.compacted)
        return bisect.bisect_right(self._changes[resource.plural], rv, key=lambda change: change.rv)

    def changes(self, resource: Resource, start: int) -> Sequence[Change]:
        """The changes of a resource from an index on."""
        return self._changes[resource.plural][start:]

    def as_of(self, resource: Resource, rv: int) -> list[Json]:
        """All objects as they were at `rv`, in the order of their keys: what later pages of a list show."""
        state = dict(self._objects[resource.plural])
        for change in reversed(self.changes(resource, self.changes_after(resource, rv))):
            if change.previous is None:
                state.pop(key_of(change.object), None)
            else:
                state[key_of(change.object)] = change.previous
        return [obj for _, obj in sorted(state.items())]

    def compact(self) -> None:
        """Forget the past: every resourceVersion before this moment is too old from now on."""
        self.rv += 1
        self.compacted = self.rv

    def news(self, resource: Resource) -> asyncio.Event:
        """Set with the next change of the resource."""
        return self._news[resource.plural]

    def wake_watchers(self) -> None:
        """Let every watcher look around although nothing has changed."""
        for plural in RESOURCES:
            self._wake(plural)

    def _record(
        self,
        what: Literal["ADDED", "MODIFIED", "DELETED"],
        resource: Resource,
        obj: Json,
        previous: Json | None,
    ) -> Json:
        self.rv += 1
        obj["metadata"]["resourceVersion"] = str(self.rv)
        objects = self._objects[resource.plural]
        if what == "DELETED":
            del objects[key_of(obj)]
        else:
            objects[key_of(obj)] = obj
        change = Change(what, resource, obj, previous, self.rv, self._clock.now())
        self._changes[resource.plural].append(change)
        self.history.append(change)
        self._wake(resource.plural)
        for listener in self.listeners:
            listener(change)
        return obj

    def _wake(self, plural: str) -> None:
        self._news[plural].set()
        self._news[plural] = asyncio.Event()

    def stamp(self) -> str:
        """The present time as the API writes it."""
        return timestamp(self._clock.now())
