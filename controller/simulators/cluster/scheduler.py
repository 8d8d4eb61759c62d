"""kube-scheduler: gives waiting pods a node, or says why none fits.

Woken by changes that can help a waiting pod, never by time. Pods that ask for the same are judged together, so
a thousand waiting pods cost one look at the nodes.
"""

import asyncio
import json
import random
from collections import Counter
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


class Scheduler:
    """Places pods; `run` is its only task."""

    def __init__(self, store: Store, recorder: Recorder, clock: Clock, rng: random.Random) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._rng = rng
        self._waiting: dict[str, Key] = {}  # by uid, oldest first
        self._used: dict[str, Usage] = {}
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
            self._wake.set()
        if change.resource is not PODS:
            return
        pod, before = change.object, change.previous
        alive = change.type != "DELETED"
        if before is not None and _occupies(before):
            self._count(before, -1)
        if alive and _occupies(pod):
            self._count(pod, 1)
        elif before is not None and _occupies(before):
            self._wake.set()
        if alive and _waits(pod):
            if uid_of(pod) not in self._waiting:
                self._waiting[uid_of(pod)] = key_of(pod)
                self._wake.set()
        else:
            self._waiting.pop(uid_of(pod), None)

    def _count(self, pod: Json, sign: int) -> None:
        used = self._used.setdefault(node_of(pod), {})
        for name, amount in requests_of(pod).items():
            used[name] = used.get(name, NO_AMOUNT) + sign * amount

    def _place_all(self) -> None:
        """Place what waits, oldest first; what asks for the same as a pod that found nothing finds nothing."""
        if not self._waiting:
            return
        nodes = list(self._store.values(NODES))
        offered = {node["metadata"]["name"]: allocatable_of(node) for node in nodes}
        open_nodes: dict[str, list[str]] = {}
        refusals: dict[str, Counter[str]] = {}
        told: dict[str, str] = {}
        for key in list(self._waiting.values()):
            pod = self._store.find(PODS, *key)
            if pod is None:
                continue
            likeness = _likeness(pod)
            if likeness not in open_nodes:
                open_nodes[likeness], refusals[likeness] = _sift(pod, nodes)
            wanted = requests_of(pod)
            fitting = [] if likeness in told else self._with_room(wanted, open_nodes[likeness], offered)
            # A node that is full now stays full for the rest of this round.
            open_nodes[likeness] = fitting or open_nodes[likeness]
            if fitting:
                self._bind(pod, self._rng.choice(fitting))
                continue
            if likeness not in told:
                counts = Counter(refusals[likeness])
                for name in open_nodes[likeness]:
                    counts.update(shortages(wanted, offered[name], self._used.get(name, {})))
                told[likeness] = _message(len(nodes), counts)
            self._refuse(pod, told[likeness])

    def _with_room(self, wanted: Usage, names: list[str], offered: dict[str, Usage]) -> list[str]:
        return [name for name in names if not shortages(wanted, offered[name], self._used.get(name, {}))]

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


def _sift(pod: Json, nodes: list[Json]) -> tuple[list[str], Counter[str]]:
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
