"""What each board is doing, for pages and metrics. Pure."""

from collections import defaultdict
from collections.abc import Iterator

from controller.decide.capacity import BoardState, SlotMap
from controller.domain.boards import Board
from controller.domain.sightings import Pod, PodView


def describe_boards(slots: SlotMap, pods: PodView, board_label: str) -> Iterator[Board]:
    """Every node with the board label or with slots, as jobs were matched to them; others are no boards."""
    taken: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods.pods.values():
        if pod.node is not None and pod.slots > 0 and not pod.phase.ended:
            taken[pod.node].append(pod)
    for node in slots.fleet.nodes.values():
        label = node.labels.get(board_label)
        if label is None and node.slots <= 0:
            continue
        state, free = slots.state(node), slots.free(node)
        if state is BoardState.FREE and free < node.slots:
            state = BoardState.BUSY if taken[node.name] else BoardState.PROMISED
        worker = min((pod.name for pod in taken[node.name]), default=None)
        yield Board(node.name, label, state.value, node.slots, free, worker)
