"""What kube-controller-manager does about nodes: taints, evictions, and pods whose node is gone."""

import asyncio
from datetime import timedelta

from controller.ports import Clock
from controller.simulators.cluster import boards
from controller.simulators.cluster.crew import Crew
from controller.simulators.cluster.fitting import covers
from controller.simulators.cluster.objects import (
    NODES,
    PODS,
    Json,
    is_terminal,
    key_of,
    node_of,
    set_condition,
    uid_of,
)
from controller.simulators.cluster.store import Change, Store
from controller.simulators.cluster.writes import Writes

GRACE = timedelta(seconds=40)
"""How long a silent kubelet, or a vanished node, is waited for."""


class NodeController:
    """Acts on time that `fleet` starts and stops."""

    def __init__(self, store: Store, writes: Writes, crew: Crew, clock: Clock) -> None:
        self._store = store
        self._writes = writes
        self._crew = crew
        self._clock = clock
        self._silent: dict[str, asyncio.Task[None]] = {}
        self._evictions: dict[str, list[asyncio.Task[None]]] = {}

    def notice(self, change: Change) -> None:
        """Mirror a cordon in a taint; clean up behind a node that is gone."""
        name = change.object["metadata"]["name"]
        if change.type == "DELETED":
            if self._crew.working:
                self._crew.later(GRACE, lambda: self._collect_pods(name), f"collect pods of {name}")
            return
        cordoned = bool(change.object["spec"].get("unschedulable"))
        if cordoned != boards.has_taint(change.object, boards.UNSCHEDULABLE):
            self._store.change(NODES, ("", name), self._mirror_cordon)

    def fall_silent(self, name: str) -> None:
        """A kubelet is dead: wait, then say so."""
        if self._crew.working and name not in self._silent:
            self._silent[name] = self._crew.later(GRACE, lambda: self._give_up(name), f"silence of {name}")

    def hear(self, name: str) -> None:
        """A kubelet lives again."""
        for task in (*self._evictions.pop(name, ()), self._silent.pop(name, None)):
            if task is not None:
                task.cancel()

        def recover(node: Json) -> None:
            boards.report_ready(node, self._clock.now())
            boards.untaint(node, boards.UNREACHABLE)

        self._store.change(NODES, ("", name), recover)

    def forget(self) -> None:
        """The timers were ended with the crew."""
        self._silent.clear()
        self._evictions.clear()

    def _mirror_cordon(self, node: Json) -> None:
        if node["spec"].get("unschedulable"):
            boards.taint(node, boards.UNSCHEDULABLE, "NoSchedule", self._clock.now())
        else:
            boards.untaint(node, boards.UNSCHEDULABLE)

    def _give_up(self, name: str) -> None:
        def mark(node: Json) -> None:
            now = self._clock.now()
            boards.report_silence(node, now)
            boards.taint(node, boards.UNREACHABLE, "NoSchedule", now)
            boards.taint(node, boards.UNREACHABLE, "NoExecute", now)

        if self._store.change(NODES, ("", name), mark) is None:
            return
        for pod in self._pods_on(name):
            self._store.change(PODS, key_of(pod), self._mark_unready)
            self._plan_eviction(name, pod)

    def _mark_unready(self, pod: Json) -> None:
        set_condition(pod["status"], "Ready", "False", self._clock.now(), reason="NodeNotReady")

    def _plan_eviction(self, name: str, pod: Json) -> None:
        """A pod is deleted when it has tolerated the taint for as long as it said; for ever if it said nothing."""
        evil = {"key": boards.UNREACHABLE, "effect": "NoExecute"}
        fitting = [each for each in pod["spec"].get("tolerations") or () if covers(each, evil)]
        limits = [each["tolerationSeconds"] for each in fitting if each.get("tolerationSeconds") is not None]
        if fitting and not limits:
            return
        delay = timedelta(seconds=min(limits, default=0))
        task = self._crew.later(delay, lambda: self._evict(pod), f"eviction of {pod['metadata']['name']}")
        self._evictions.setdefault(name, []).append(task)

    def _evict(self, pod: Json) -> None:
        there = self._store.find(PODS, *key_of(pod))
        if there is not None and uid_of(there) == uid_of(pod):
            self._writes.remove_pod(there)

    def _collect_pods(self, name: str) -> None:
        """Delete the pods of a node that did not come back."""
        if self._store.find(NODES, "", name) is not None:
            return

        def fail(pod: Json) -> None:
            pod["status"]["phase"] = "Failed"
            message = "PodGC: node no longer exists"
            now = self._clock.now()
            set_condition(
                pod["status"], "DisruptionTarget", "True", now, reason="DeletionByPodGC", message=message
            )

        for pod in self._pods_on(name):
            if not is_terminal(pod):
                self._store.change(PODS, key_of(pod), fail)
            self._store.remove(PODS, key_of(pod))

    def _pods_on(self, name: str) -> list[Json]:
        return [pod for pod in self._store.values(PODS) if node_of(pod) == name]
