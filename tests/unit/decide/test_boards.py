"""What each board is doing, as pages show it."""

import pytest

from controller.decide.boards import describe_boards
from controller.domain.boards import Board
from controller.domain.sightings import Node, NodeView, Pod, PodPhase, PodView
from tests.unit.decide.builders import BOARD, NAME, a_node, a_pod


def boards(
    nodes: list[Node], pods: list[Pod] | None = None, held: frozenset[str] = frozenset()
) -> list[Board]:
    shown = PodView({pod.name: pod for pod in pods or ()}, 1)
    return list(describe_boards(NodeView({node.name: node for node in nodes}, 1), shown, held, BOARD))


def test_a_free_board_has_no_worker() -> None:
    assert boards([a_node()]) == [Board("board-1", "x", "free", 1, None)]


def test_a_board_shows_the_worker_that_holds_it() -> None:
    assert boards([a_node()], [a_pod()]) == [Board("board-1", "x", "busy", 1, NAME)]


@pytest.mark.parametrize("pod", [a_pod(phase=PodPhase.SUCCEEDED), a_pod(slots=0), a_pod(node="board-2")])
def test_a_pod_that_takes_no_slot_of_it_does_not_make_it_busy(pod: Pod) -> None:
    assert boards([a_node()], [pod]) == [Board("board-1", "x", "free", 1, None)]


def test_a_board_of_many_slots_is_busy_as_soon_as_one_is_taken() -> None:
    (board,) = boards([a_node(slots=4)], [a_pod("b"), a_pod("a")])
    assert (board.state, board.slots, board.worker) == ("busy", 4, "a")


@pytest.mark.parametrize(
    ("node", "state"),
    [
        (a_node(unreachable=True, ready=False), "unreachable"),
        (a_node(ready=False), "not_ready"),
        (a_node(schedulable=False), "cordoned"),
        (a_node(slots=0), "no_resource"),
    ],
)
def test_a_board_that_cannot_work_says_why(node: Node, state: str) -> None:
    assert [board.state for board in boards([node])] == [state]


def test_a_held_board_says_so_and_still_shows_its_worker() -> None:
    assert boards([a_node()], [a_pod()], frozenset({"board-1"})) == [Board("board-1", "x", "held", 1, NAME)]


def test_nodes_that_are_no_boards_are_left_out() -> None:
    assert boards([a_node("master", labels={}, slots=0)]) == []
    assert [board.board for board in boards([a_node(labels={})])] == [None]
