"""What each board is doing, for pages and metrics. Pure."""

from collections.abc import Iterator

from controller.decide.capacity import BoardState, SlotMap
from controller.domain.boards import Board


def describe_boards(slots: SlotMap, board_label: str) -> Iterator[Board]:
    """Every node with the board label or with slots, as jobs were matched to them; others are no boards.

    States and pods are of one moment: beside a later view of the pods, one that has just ended leaves a busy board
    without a worker.
    """
    for node in slots.fleet.nodes.values():
        label = node.labels.get(board_label)
        if label is None and node.slots <= 0:
            continue
        state, free, pod = slots.state(node), slots.free(node), slots.fleet.pods.get(node.name)
        if state is BoardState.FREE and free < node.slots:
            state = BoardState.PROMISED if pod is None else BoardState.BUSY
        yield Board(node.name, label, state.value, node.slots, free, pod)
