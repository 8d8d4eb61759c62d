"""Which nodes should offer a slot by our doing: those with the board label. Pure.

Only with `boards.advertise`, so where no device plugin does it. What a node offers already is left alone, whoever
offers it; a kubelet that starts anew may set the capacity to 0, and then it is offered again. Two installations may
share the nodes: what one offers is its own to withdraw.
"""

from dataclasses import dataclass

from controller.domain.sightings import NodeView


@dataclass(frozen=True, slots=True)
class Slots:
    """The nodes to write to."""

    offer: tuple[str, ...]
    withdraw: tuple[str, ...]


def advertise_slots(nodes: NodeView, board_label: str, instance: str) -> Slots:
    """Offer on boards that offer none; withdraw ours from nodes that are boards no more."""
    every = sorted(nodes.nodes.values(), key=lambda node: node.name)
    ours = offered_by(nodes, instance)
    return Slots(
        offer=tuple(node.name for node in every if board_label in node.labels and node.capacity <= 0),
        withdraw=tuple(name for name in ours if board_label not in nodes.nodes[name].labels),
    )


def offered_by(nodes: NodeView, instance: str) -> tuple[str, ...]:
    """The nodes whose slot this installation has offered."""
    return tuple(sorted(name for name, node in nodes.nodes.items() if node.advertised_by == instance))
