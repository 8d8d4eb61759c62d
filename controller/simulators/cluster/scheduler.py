"""kube-scheduler: gives waiting pods a node, or says why none fits.

Woken by changes that can help a waiting pod, never by time. Pods that ask for the same are judged together, so
a thousand waiting pods cost one look at the nodes.
"""

import asyncio
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from controller.ports import Clock
from controller.simulators.cluster.fitting import NO_AMOUNT, allocatable_of, obstacle, requests_of, shortages
from controller.simulators.cluster.objects import (
    NODES,
    PODS,
    Json,
    condition_of,
    is_terminal,
    key_of,
    node_of,
    set_condition,
    uid_of,
)
from controller.simulators.cluster.recorder import Recorder
from controller.simulators.cluster.store import Change, Key, Store

COMPONENT = "default-scheduler"
Usage = dict[str, Decimal]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A pod without a node, with what decides where it may go."""

    key: Key
    likeness: str
    wanted: Usage


class Scheduler:
    """Places pods; `run` is its only task."""

    def __init__(self, store: Store, recorder: Recorder, clock: Clock, rng: random.Random) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._rng = rng
        self._waiting: dict[str, _Waiting] = {}  # by uid, oldest first
        self._used: dict[str, Usage] = {}
        self._offered: dict[str, Usage] = {}
        self._usable: dict[str, tuple[list[str], Counter[str]]] = {}  # by likeness, until a node changes
        self._wake = asyncio.Event()
        store.listeners.append(self._notice)

    async def run(self) -> None:
        """Place pods whenever something has changed."""
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._place_all()

    def _notice(self, change: Change) -> None:
        if change.resource is NODES:
            self._notice_node(change)
        elif change.resource is PODS:
            self._notice_pod(change)

    def _notice_node(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.type == "DELETED":
            self._offered.pop(name, None)
        else:
            self._offered[name] = allocatable_of(change.object)
        self._usable.clear()
        self._wake.set()

    def _notice_pod(self, change: Change) -> None:
        pod, before = change.object, change.previous
        alive = change.type != "DELETED"
        held, holds = before is not None and _occupies(before), alive and _occupies(pod)
        if before is not None and held and not holds:
            self._count(before, -1)
            self._wake.set()
        if holds and not held:
            self._count(pod, 1)
        if not alive or not _waits(pod):
            self._waiting.pop(uid_of(pod), None)
        elif uid_of(pod) not in self._waiting:
            self._waiting[uid_of(pod)] = _Waiting(key_of(pod), _likeness(pod), requests_of(pod))
            self._wake.set()

    def _count(self, pod: Json, sign: int) -> None:
        used = self._used.setdefault(node_of(pod), {})
        for name, amount in requests_of(pod).items():
            used[name] = used.get(name, NO_AMOUNT) + sign * amount

    def _place_all(self) -> None:
        """Place what waits, oldest first; what asks for the same as a pod that found nothing finds nothing."""
        told: dict[str, str] = {}
        for waiting in list(self._waiting.values()):
            pod = self._store.find(PODS, *waiting.key)
            if pod is None:
                continue
            node = None if waiting.likeness in told else self._find_room(pod, waiting)
            if node is not None:
                self._bind(pod, node)
                continue
            if waiting.likeness not in told:
                told[waiting.likeness] = self._explain(waiting)
            self._refuse(pod, told[waiting.likeness])

    def _find_room(self, pod: Json, waiting: _Waiting) -> str | None:
        """The first usable node with room, looked for from a random place on, so that boards share the work."""
        if waiting.likeness not in self._usable:
            self._usable[waiting.likeness] = _sift(pod, self._store.values(NODES))
        names = self._usable[waiting.likeness][0]
        first = self._rng.randrange(len(names)) if names else 0
        rotated = itertools.chain(itertools.islice(names, first, None), itertools.islice(names, first))
        return next((name for name in rotated if not self._short_of(waiting, name)), None)

    def _explain(self, waiting: _Waiting) -> str:
        names, refusals = self._usable[waiting.likeness]
        counts = Counter(refusals)
        for name in names:
            counts.update(self._short_of(waiting, name))
        return _message(len(self._offered), counts)

    def _short_of(self, waiting: _Waiting, name: str) -> list[str]:
        return shortages(waiting.wanted, self._offered[name], self._used.get(name, {}))

    def _bind(self, pod: Json, node: str) -> None:
        def assign(fresh: Json) -> None:
            fresh["spec"]["nodeName"] = node
            set_condition(fresh["status"], "PodScheduled", "True", self._clock.now())

        bound = self._store.change(PODS, key_of(pod), assign)
        if bound is not None:
            namespace, name = key_of(pod)
            message = f"Successfully assigned {namespace}/{name} to {node}"
            self._recorder.normal(bound, "Scheduled", message, COMPONENT)

    def _refuse(self, pod: Json, message: str) -> None:
        if condition_of(pod, "PodScheduled").get("message") == message:
            return

        def note(fresh: Json) -> None:
            now = self._clock.now()
            set_condition(
                fresh["status"], "PodScheduled", "False", now, reason="Unschedulable", message=message
            )

        refused = self._store.change(PODS, key_of(pod), note)
        if refused is not None:
            self._recorder.warning(refused, "FailedScheduling", message, COMPONENT)


def _waits(pod: Json) -> bool:
    return not node_of(pod) and not is_terminal(pod) and "deletionTimestamp" not in pod["metadata"]


def _occupies(pod: Json) -> bool:
    return bool(node_of(pod)) and not is_terminal(pod)


def _likeness(pod: Json) -> str:
    """All that decides where a pod may go."""
    spec = pod["spec"]
    asked = [container.get("resources") for container in spec["containers"]]
    parts = [spec.get("nodeSelector"), spec.get("affinity"), spec.get("tolerations"), asked]
    return json.dumps(parts, sort_keys=True)


def _sift(pod: Json, nodes: Iterable[Json]) -> tuple[list[str], Counter[str]]:
    """The nodes that the pod may use, and what keeps it off the others."""
    usable, refusals = [], Counter[str]()
    for node in nodes:
        why = obstacle(pod, node)
        if why:
            refusals[why] += 1
        else:
            usable.append(str(node["metadata"]["name"]))
    return usable, refusals


def _message(nodes: int, counts: Counter[str]) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = ", ".join(sorted(f"{count} {why}" for why, count in counts.items()))
    victims = sum(count for why, count in counts.items() if why.startswith(("Insufficient", "Too many")))
    parts = [f"{victims} No preemption victims found for incoming pod"] if victims else []
    if nodes > victims:
        parts.append(f"{nodes - victims} Preemption is not helpful for scheduling")
    head = f"0/{nodes} nodes are available"
    return f"{head}: {reasons}. preemption: {head}: {', '.join(parts)}."
