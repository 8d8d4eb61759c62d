"""What each board is doing, as pages show it."""

from collections.abc import Sequence

import pytest

from controller.decide.boards import describe_boards
from controller.decide.capacity import Claim, free_slots
from controller.domain.boards import Board
from controller.domain.sightings import Node, NodeView, Pod, PodPhase, PodView
from tests.unit.decide.builders import BOARD, NAME, a_node, a_pod


def boards(
    nodes: list[Node],
    pods: list[Pod] | None = None,
    held: frozenset[str] = frozenset(),
    claims: Sequence[Claim] = (),
    promised: Sequence[str] = (),
) -> list[Board]:
    shown = PodView({pod.name: pod for pod in pods or ()}, 1)
    slots = free_slots(NodeView({node.name: node for node in nodes}, 1), shown, claims, held)
    return list(describe_boards(slots.promise(promised), BOARD))


def test_a_free_board_has_no_worker() -> None:
    assert boards([a_node()]) == [Board("board-1", "x", "free", 1, 1, None)]


def test_a_board_shows_the_worker_that_holds_it() -> None:
    assert boards([a_node()], [a_pod()]) == [Board("board-1", "x", "busy", 1, 0, NAME)]


@pytest.mark.parametrize("pod", [a_pod(phase=PodPhase.SUCCEEDED), a_pod(slots=0), a_pod(node="board-2")])
def test_a_pod_that_takes_no_slot_of_it_does_not_make_it_busy(pod: Pod) -> None:
    assert boards([a_node()], [pod]) == [Board("board-1", "x", "free", 1, 1, None)]


def test_a_board_of_many_slots_is_busy_as_soon_as_one_is_taken() -> None:
    (board,) = boards([a_node(slots=4)], [a_pod("b"), a_pod("a")])
    assert (board.state, board.slots, board.free, board.worker) == ("busy", 4, 2, "a")


@pytest.mark.parametrize(
    ("claims", "promised", "state", "free"),
    [
        ([Claim({BOARD: "x"})], [], "promised", 0),  # a reserved worker whose pod is not seen yet
        ([Claim({BOARD: "y"})], [], "free", 1),
        ([], ["board-1"], "promised", 0),  # a step of the plan just made
    ],
)
def test_a_board_that_is_promised_to_a_worker_is_not_free(
    claims: list[Claim], promised: list[str], state: str, free: int
) -> None:
    (board,) = boards([a_node()], claims=claims, promised=promised)
    assert (board.state, board.free, board.worker) == (state, free, None)


def test_a_board_of_many_slots_with_a_pod_is_busy_whatever_else_is_promised() -> None:
    (board,) = boards([a_node(slots=4)], [a_pod()], promised=["board-1", "board-1", "board-1"])
    assert (board.state, board.free) == ("busy", 0)
    (board,) = boards([a_node(slots=4)], promised=["board-1"])
    assert (board.state, board.free) == ("promised", 3)


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
    assert boards([a_node()], [a_pod()], frozenset({"board-1"})) == [
        Board("board-1", "x", "held", 1, 0, NAME)
    ]


def test_nodes_that_are_no_boards_are_left_out() -> None:
    assert boards([a_node("master", labels={}, slots=0)]) == []
    assert [board.board for board in boards([a_node(labels={})])] == [None]
