"""Which nodes should offer a slot by our doing: those with the board label. Pure.

Only with `boards.advertise`, so where no device plugin does it. What a node offers already is left alone, whoever
offers it; a kubelet that starts anew may set the capacity to 0, and then it is offered again.
"""

from dataclasses import dataclass

from controller.domain.sightings import NodeView


@dataclass(frozen=True, slots=True)
class Slots:
    """The nodes to write to."""

    offer: tuple[str, ...]
    withdraw: tuple[str, ...]


def advertise_slots(nodes: NodeView, board_label: str) -> Slots:
    """Offer on boards that offer none; withdraw from nodes that are boards no more."""
    every = sorted(nodes.nodes.values(), key=lambda node: node.name)
    return Slots(
        offer=tuple(node.name for node in every if board_label in node.labels and node.capacity <= 0),
        withdraw=tuple(node.name for node in every if board_label not in node.labels and node.advertised),
    )
