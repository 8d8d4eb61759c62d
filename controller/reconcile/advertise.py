"""With `boards.advertise`: keeps a slot on every board, beside the loop; and takes all of them off on request."""

from collections.abc import Awaitable

import structlog

from controller.decide.advertise import Slots, advertise_slots, offered_by
from controller.domain.sightings import Unknown
from controller.errors import ClusterUnavailable
from controller.ports import Cluster
from controller.reconcile.beside import Beside, all_of
from controller.settings import File

log = structlog.get_logger()


class Advertise:
    """One step of the loop."""

    def __init__(self, file: File, cluster: Cluster, beside: Beside) -> None:
        self._wanted = file.boards.advertise
        self._label = file.kubernetes.board_label
        self._instance = file.instance
        self._cluster = cluster
        self._beside = beside

    async def run(self, epoch: int) -> None:
        """Have the nodes written that need it; writing the same again changes nothing, so no epoch is needed."""
        nodes = self._cluster.nodes()
        if not self._wanted or isinstance(nodes, Unknown):
            return
        slots = advertise_slots(nodes, self._label, self._instance)
        if slots.offer or slots.withdraw:
            self._beside.start("advertise boards", lambda: self._write(slots))

    async def _write(self, slots: Slots) -> bool:
        """The watch tells the loop when a node has changed, so nobody is woken here."""
        offered = [_told(self._cluster.offer_slot(name), "board.advertised", name) for name in slots.offer]
        withdrawn = [
            _told(self._cluster.withdraw_slot(name), "board.withdrawn", name) for name in slots.withdraw
        ]
        await all_of([*offered, *withdrawn])
        return False


async def _told(writing: Awaitable[None], event: str, node: str) -> None:
    await writing
    log.info(event, node=node)


async def withdraw_slots(cluster: Cluster, instance: str) -> tuple[str, ...]:
    """Take the slots off that this installation has offered; the nodes' names. One that refuses keeps no other one."""
    nodes = cluster.nodes()
    if isinstance(nodes, Unknown):
        raise ClusterUnavailable(f"the nodes cannot be read: {nodes.why}")
    names = offered_by(nodes, instance)
    await all_of([cluster.withdraw_slot(name) for name in names])
    return names
