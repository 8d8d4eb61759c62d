"""All boards: adding, breaking and mending them, and telling each kubelet what concerns it."""

import itertools
from collections.abc import Mapping, Sequence

from controller.ports import Clock
from controller.simulators.cluster.boards import make_node
from controller.simulators.cluster.crew import Crew
from controller.simulators.cluster.images import Images
from controller.simulators.cluster.kubelet import Kubelet
from controller.simulators.cluster.node_controller import NodeController
from controller.simulators.cluster.objects import NODES, PODS, Json, node_of
from controller.simulators.cluster.programs import Behaviour
from controller.simulators.cluster.recorder import Recorder
from controller.simulators.cluster.store import Change, Store
from controller.simulators.cluster.writes import Writes


class Fleet:
    """The boards by name."""

    def __init__(
        self, store: Store, writes: Writes, recorder: Recorder, images: Images, crew: Crew, clock: Clock
    ) -> None:
        self._store = store
        self._writes = writes
        self._recorder = recorder
        self._images = images
        self._crew = crew
        self._clock = clock
        self._numbers = itertools.count(1)
        self._kubelets: dict[str, Kubelet] = {}
        self._nodes = NodeController(store, writes, crew, clock)
        store.listeners.append(self._notice)

    def add_board(
        self, name: str, labels: Mapping[str, str], slots: int = 1, taints: Sequence[Mapping[str, str]] = ()
    ) -> None:
        """Join a board to the cluster."""
        number = next(self._numbers)
        ip = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        kubelet = Kubelet(name, ip, self._store, self._recorder, self._images, self._crew, self._clock)
        self._writes.add(NODES, "", make_node(name, ip, labels, slots, taints, self._clock.now()))
        self._kubelets[name] = kubelet
        kubelet.look_around()

    def remove_board(self, name: str) -> None:
        """Take a board and its node away; its pods follow when the controller manager notices."""
        self._kubelets.pop(name).vanish()
        self._store.remove(NODES, ("", name))

    def cordon(self, name: str) -> None:
        """Let no more pods onto a board."""
        self._set_cordon(name, cordoned=True)

    def uncordon(self, name: str) -> None:
        """Let pods onto a board again."""
        self._set_cordon(name, cordoned=False)

    def kill_kubelet(self, name: str) -> None:
        """End a board's kubelet; its containers go on, unseen."""
        self._kubelets[name].kill()
        self._nodes.fall_silent(name)

    def cut_power(self, name: str) -> None:
        """End a board's kubelet and its containers."""
        self._kubelets[name].cut_power()
        self._nodes.fall_silent(name)

    def revive_kubelet(self, name: str) -> None:
        """Bring a dead kubelet, or a board without power, back."""
        self._nodes.hear(name)
        self._kubelets[name].revive()

    def set_behaviour(self, name: str, behaviour: Behaviour) -> None:
        """Say how a board treats the containers that it starts from now on."""
        self._kubelets[name].behaviour = behaviour

    def kubelet(self, name: str) -> Kubelet | None:
        """The kubelet of a board, dead or alive."""
        return self._kubelets.get(name)

    def begin(self) -> None:
        """Look at everything that happened before the simulator ran."""
        for kubelet in self._kubelets.values():
            if not kubelet.alive.is_set():
                self._nodes.fall_silent(kubelet.name)
            kubelet.look_around()

    def end(self) -> None:
        """The crew has gone home."""
        self._nodes.forget()

    def _set_cordon(self, name: str, *, cordoned: bool) -> None:
        def write(node: Json) -> None:
            node["spec"].pop("unschedulable", None)
            if cordoned:
                node["spec"]["unschedulable"] = True

        if self._store.change(NODES, ("", name), write) is None:
            raise KeyError(name)

    def _notice(self, change: Change) -> None:
        if change.resource is PODS:
            kubelet = self._kubelets.get(node_of(change.object))
            if kubelet is not None:
                kubelet.notice_pod(change)
        elif change.resource is NODES:
            self._nodes.notice(change)
            kubelet = self._kubelets.get(change.object["metadata"]["name"])
            node = self._store.find(NODES, "", change.object["metadata"]["name"])
            if kubelet is not None and node is not None:
                kubelet.notice_node(node)
