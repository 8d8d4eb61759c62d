"""The garbage collector: what is owned goes when all its owners are gone."""

import asyncio
from collections import defaultdict

from controller.simulators.cluster.objects import (
    NODES,
    PODS,
    SECRETS,
    Json,
    Resource,
    key_of,
    owner_uids,
    uid_of,
)
from controller.simulators.cluster.store import Change, Key, Store

OWNERS = {"Pod": PODS, "Node": NODES, "Secret": SECRETS}


class GarbageCollector:
    """Removes dependents; `run` is its only task."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dependents: dict[str, set[tuple[str, Key]]] = defaultdict(set)
        self._resources: dict[str, Resource] = {}
        self._suspects: dict[tuple[str, Key], None] = {}
        self._wake = asyncio.Event()
        store.listeners.append(self._notice)

    async def run(self) -> None:
        """Look at an object whenever it, or an owner of it, has changed."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._suspects:
                plural, key = self._suspects.popitem()[0]
                self._judge(self._resources[plural], key)

    def _notice(self, change: Change) -> None:
        item = (change.resource.plural, key_of(change.object))
        self._resources[change.resource.plural] = change.resource
        if change.type == "DELETED":
            for owner in owner_uids(change.object):
                self._dependents.get(owner, set()).discard(item)
            self._suspect(self._dependents.pop(uid_of(change.object), set()))
            return
        owners = list(owner_uids(change.object))
        for owner in owners:
            self._dependents[owner].add(item)
        if owners and (change.previous is None or list(owner_uids(change.previous)) != owners):
            self._suspect({item})

    def _suspect(self, items: set[tuple[str, Key]]) -> None:
        self._suspects.update(dict.fromkeys(sorted(items)))
        if items:
            self._wake.set()

    def _judge(self, resource: Resource, key: Key) -> None:
        obj = self._store.find(resource, *key)
        owners = obj["metadata"].get("ownerReferences") or [] if obj is not None else []
        if owners and not any(self._exists(owner, key[0]) for owner in owners):
            self._store.remove(resource, key)

    def _exists(self, owner: Json, namespace: str) -> bool:
        """An owner of a kind that is not simulated is taken to exist."""
        resource = OWNERS.get(str(owner.get("kind")))
        if resource is None:
            return True
        found = self._store.find(resource, namespace, str(owner.get("name")))
        return found is not None and uid_of(found) == owner.get("uid")
