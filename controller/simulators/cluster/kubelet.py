"""The kubelet of one board: takes the pods bound to it, and is dead or alive."""

import asyncio

from controller.ports import Clock
from controller.simulators.cluster.crew import Crew
from controller.simulators.cluster.images import Images
from controller.simulators.cluster.objects import NODES, PODS, Json, clone, is_terminal, node_of, uid_of
from controller.simulators.cluster.pod_worker import PodWorker
from controller.simulators.cluster.programs import Behaviour, Container
from controller.simulators.cluster.recorder import Recorder
from controller.simulators.cluster.store import Change, Store


class Kubelet:
    """One per board; told of changes by `fleet`."""

    def __init__(
        self, name: str, ip: str, store: Store, recorder: Recorder, images: Images, crew: Crew, clock: Clock
    ) -> None:
        self.name = name
        self.ip = ip
        self.store = store
        self.recorder = recorder
        self.images = images
        self.crew = crew
        self.clock = clock
        self.behaviour = Behaviour()
        self.alive = asyncio.Event()
        self.alive.set()
        self.pulled: set[str] = set()
        self.logs: dict[str, Container] = {}
        self._workers: dict[str, tuple[PodWorker, asyncio.Task[None]]] = {}

    def notice_pod(self, change: Change) -> None:
        """A pod of this board changed."""
        if not self._acts():
            return
        uid = uid_of(change.object)
        if change.type == "DELETED":
            self._drop(uid)
        elif uid in self._workers:
            self._workers[uid][0].notice(change.object)
        elif not is_terminal(change.object):
            self._take(change.object)

    def notice_node(self, node: Json) -> None:
        """Offer what someone wrote into the node's capacity and no more, as a kubelet does for extended resources."""
        status = node.get("status", {})
        offered = {name: value for name, value in (status.get("capacity") or {}).items() if "/" in name}
        allocatable = status.get("allocatable") or {}
        if not self._acts() or {name: v for name, v in allocatable.items() if "/" in name} == offered:
            return

        def offer(fresh: Json) -> None:
            own = {
                name: v for name, v in (fresh["status"].get("allocatable") or {}).items() if "/" not in name
            }
            fresh["status"]["allocatable"] = {**own, **clone(offered)}

        self.store.change(NODES, ("", self.name), offer)

    def look_around(self) -> None:
        """Compare what is running with what should be: after a start, and after having been dead."""
        if not self._acts():
            return
        there = {uid_of(pod): pod for pod in self.store.values(PODS) if node_of(pod) == self.name}
        for uid in list(self._workers):
            if uid not in there:
                self._drop(uid)
            else:
                self._workers[uid][0].notice(there[uid])
        for uid, pod in there.items():
            if uid not in self._workers and not is_terminal(pod):
                self._take(pod)

    def kill(self) -> None:
        """End the kubelet; containers go on unseen."""
        self.alive.clear()

    def revive(self) -> None:
        """Start it again."""
        self.alive.set()
        self.look_around()

    def cut_power(self) -> None:
        """End the kubelet and every container."""
        self.alive.clear()
        for worker, _ in self._workers.values():
            worker.lose_power()

    def vanish(self) -> None:
        """The board is gone for good."""
        self.alive.clear()
        for uid in list(self._workers):
            self._drop(uid)

    def pod_ip(self, pod: Json) -> str:
        """The board's own address for pods on its network, else one beside it."""
        return self.ip if pod["spec"].get("hostNetwork") else self.ip.replace("10.", "172.", 1)

    def _acts(self) -> bool:
        return self.alive.is_set() and self.crew.working

    def _take(self, pod: Json) -> None:
        worker = PodWorker(self, pod)
        task = self.crew.start(worker.run(), f"pod {pod['metadata']['name']}")
        self._workers[worker.uid] = (worker, task)
        task.add_done_callback(lambda _: self._workers.pop(worker.uid, None))

    def _drop(self, uid: str) -> None:
        """Kill what runs without a pod, and forget its log."""
        self.logs.pop(uid, None)
        if uid in self._workers:
            self._workers[uid][1].cancel()
