"""Which nodes get a slot by our doing."""

from controller.decide.advertise import Slots, advertise_slots
from controller.domain.sightings import Node, NodeView

LABEL = "riseproject.dev/board"


def a_node(name: str = "n", *, board: bool = True, capacity: int = 0, by: str | None = None) -> Node:
    labels = {LABEL: "rv1"} if board else {}
    return Node(name, labels, True, True, False, capacity, capacity=capacity, advertised_by=by)


def decided(*nodes: Node) -> Slots:
    return advertise_slots(NodeView({node.name: node for node in nodes}, 1), LABEL, "prod")


def test_a_board_without_a_slot_gets_one() -> None:
    assert decided(a_node("a"), a_node("b")) == Slots(("a", "b"), ())


def test_a_board_whose_kubelet_forgot_the_slot_gets_it_again() -> None:
    assert decided(a_node("a", capacity=0, by="prod")) == Slots(("a",), ())


def test_what_a_device_plugin_offers_is_left_alone() -> None:
    assert decided(a_node(capacity=4)) == Slots((), ())


def test_a_node_that_is_no_board_gets_none() -> None:
    assert decided(a_node(board=False)) == Slots((), ())


def test_a_board_whose_label_is_taken_off_loses_the_slot_that_was_ours() -> None:
    ours = a_node("ours", board=False, capacity=1, by="prod")
    another = a_node("another", board=False, capacity=1)
    staging = a_node("staging", board=False, capacity=1, by="staging")
    assert decided(ours, another, staging) == Slots((), ("ours",))
