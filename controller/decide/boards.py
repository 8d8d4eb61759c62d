"""What each board is doing, for pages and metrics. Pure."""

from collections import defaultdict
from collections.abc import Iterator

from controller.decide.capacity import BoardState, free_slots
from controller.domain.boards import Board
from controller.domain.sightings import NodeView, Pod, PodView


def describe_boards(
    nodes: NodeView, pods: PodView, held: frozenset[str], board_label: str
) -> Iterator[Board]:
    """Every node with the board label or with slots; others are no boards."""
    slots = free_slots(nodes, pods, (), held)
    taken: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods.pods.values():
        if pod.node is not None and pod.slots > 0 and not pod.phase.ended:
            taken[pod.node].append(pod)
    for node in nodes.nodes.values():
        label = node.labels.get(board_label)
        if label is None and node.slots <= 0:
            continue
        state = slots.state(node)
        if state is BoardState.FREE and taken[node.name]:
            state = BoardState.BUSY
        worker = min((pod.name for pod in taken[node.name]), default=None)
        yield Board(node.name, label, state.value, node.slots, worker)
