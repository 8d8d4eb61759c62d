"""The simulated cluster as one object: an ASGI app to serve, and boards that a clock drives."""

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import yaml

from controller.ports import Clock
from controller.simulators.cluster.access import Account, Rule
from controller.simulators.cluster.api import Api
from controller.simulators.cluster.control import Control
from controller.simulators.cluster.crew import Crew
from controller.simulators.cluster.fleet import Fleet
from controller.simulators.cluster.garbage import GarbageCollector
from controller.simulators.cluster.images import Images
from controller.simulators.cluster.logs import Logs
from controller.simulators.cluster.objects import NAMESPACES, NODES, PODS, Json
from controller.simulators.cluster.programs import Behaviour, Program
from controller.simulators.cluster.quiet import quiet
from controller.simulators.cluster.recorder import Recorder
from controller.simulators.cluster.requests import RequestLog
from controller.simulators.cluster.scheduler import Scheduler
from controller.simulators.cluster.store import Store
from controller.simulators.cluster.writes import Writes
from controller.simulators.github.faults import Faults

NAMESPACES_AT_FIRST = ("default", "kube-system")


class ClusterSimulator:
    """Serve `app` with uvicorn and keep it `running()`; without that it is an API server without a cluster."""

    def __init__(self, clock: Clock, rng: random.Random, *, token: str) -> None:
        self.clock = clock
        self.store = Store(clock)
        self._token = token
        self._writes = Writes(self.store, clock, rng)
        self._crew = Crew(clock)
        self._images = Images()
        recorder = Recorder(self.store, clock)
        self._scheduler = Scheduler(self.store, recorder, clock, rng)
        self._garbage = GarbageCollector(self.store)
        self._fleet = Fleet(self.store, self._writes, recorder, self._images, self._crew, clock)
        logs = Logs(self.store, self._fleet, clock)
        self._api = Api(self.store, self._writes, clock, rng, token, logs.read)
        self.app = Control(self, self._api)
        for name in NAMESPACES_AT_FIRST:
            self.add_namespace(name)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let scheduler, kubelets and controllers act until the block ends."""
        self._crew.open()
        self._crew.start(self._scheduler.run(), "scheduler")
        self._crew.start(self._garbage.run(), "garbage collector")
        self._fleet.begin()
        try:
            yield
        finally:
            self.faults.clear()
            self._fleet.end()
            await self._crew.close()

    async def settle(self) -> None:
        """Let everything happen in this process that needs no time."""
        await quiet()

    @property
    def faults(self) -> Faults:
        """The rules by which requests go wrong; operations read `create pods`, `watch nodes`."""
        return self._api.faults

    @property
    def requests(self) -> RequestLog:
        """Every request so far."""
        return self._api.requests

    @property
    def programs(self) -> dict[str, Program]:
        """The images that can be pulled, and what each runs."""
        return self._images.programs

    @property
    def default_program(self) -> Program | None:
        """What every other image runs; None: it cannot be pulled."""
        return self._images.default

    @default_program.setter
    def default_program(self, program: Program | None) -> None:
        self._images.default = program

    @property
    def open_watches(self) -> int:
        """How many watches are open."""
        return self._api.open_watches

    def add_namespace(self, name: str) -> None:
        """Make a namespace."""
        self._writes.add(NAMESPACES, "", {"metadata": {"name": name}, "status": {"phase": "Active"}})

    def add_account(self, token: str, name: str, rules: Sequence[Rule]) -> None:
        """Let someone in who may do only so much."""
        self._api.accounts[token] = Account(name, rules)

    def add_board(
        self, name: str, labels: Mapping[str, str], slots: int = 1, taints: Sequence[Mapping[str, str]] = ()
    ) -> None:
        """Join a board to the cluster."""
        self._fleet.add_board(name, labels, slots, taints)

    def remove_board(self, name: str) -> None:
        """Take a board and its node away; its pods are collected 40 s later."""
        self._fleet.remove_board(name)

    def cordon(self, name: str) -> None:
        """Let no more pods onto a board."""
        self._fleet.cordon(name)

    def uncordon(self, name: str) -> None:
        """Let pods onto a board again."""
        self._fleet.uncordon(name)

    def kill_kubelet(self, name: str) -> None:
        """End a board's kubelet; its containers go on unseen, and the node is given up 40 s later."""
        self._fleet.kill_kubelet(name)

    def cut_power(self, name: str) -> None:
        """End a board's kubelet and its containers."""
        self._fleet.cut_power(name)

    def revive_kubelet(self, name: str) -> None:
        """Bring a dead kubelet, or a board without power, back."""
        self._fleet.revive_kubelet(name)

    def set_board_behaviour(self, name: str, behaviour: Behaviour) -> None:
        """Say how a board treats the containers that it starts from now on."""
        self._fleet.set_behaviour(name, behaviour)

    def drop_watches(self) -> None:
        """Break every open watch."""
        self._api.drop_watches()

    def send_bookmarks(self) -> None:
        """Send a bookmark on every open watch that wants them."""
        self._api.send_bookmarks()

    def compact(self) -> None:
        """Make every resourceVersion so far too old for a new watch."""
        self.store.compact()

    def pods(self) -> list[Json]:
        """All pods as they are now."""
        return self.store.all(PODS)

    def nodes(self) -> list[Json]:
        """All nodes as they are now."""
        return self.store.all(NODES)

    def kubeconfig(self, base_url: str) -> str:
        """A kubeconfig file that leads here."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "simulated", "cluster": {"server": base_url}}],
            "users": [{"name": "simulated", "user": {"token": self._token}}],
            "contexts": [{"name": "simulated", "context": {"cluster": "simulated", "user": "simulated"}}],
            "current-context": "simulated",
        }
        return yaml.safe_dump(content, sort_keys=False)
