"""Which boards can take one more runner."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.capacity import Boards, BoardState, Claim, SlotMap, Toleration, free_slots
from controller.domain.sightings import Node, NodeView, Pod, PodPhase, PodView

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BOARD = "riseproject.dev/board"
X = {BOARD: "x"}
X_ZONE_A = {BOARD: "x", "zone": "a"}
ANY_TAINT = (Toleration(operator="Exists"),)


def a_node(
    name: str = "board-1",
    labels: Mapping[str, str] | None = None,
    ready: bool = True,
    schedulable: bool = True,
    unreachable: bool = False,
    slots: int = 1,
    taints: tuple[tuple[str, str, str], ...] = (),
) -> Node:
    return Node(name, X if labels is None else labels, ready, schedulable, unreachable, slots, taints)


def a_pod(
    name: str = "pod-1",
    node: str | None = "board-1",
    phase: PodPhase = PodPhase.RUNNING,
    slots: int = 1,
    selector: Mapping[str, str] | None = None,
    deleting_since: datetime | None = None,
) -> Pod:
    return Pod(
        name=name,
        uid=name,
        phase=phase,
        created_at=NOW,
        resource_version=1,
        node=node,
        slots=slots,
        node_selector=X if selector is None else selector,
        deleting_since=deleting_since,
    )


def slots_of(
    nodes: Sequence[Node],
    pods: Sequence[Pod] = (),
    claims: Sequence[Claim] = (),
    held: frozenset[str] = frozenset(),
    pools: Sequence[Claim] = (),
) -> SlotMap:
    return free_slots(
        NodeView({node.name: node for node in nodes}, 1),
        PodView({pod.name: pod for pod in pods}, 1),
        claims,
        held,
        pools,
    )


def test_a_healthy_empty_board_is_free() -> None:
    assert slots_of([a_node()]).count(X) == 1


@pytest.mark.parametrize(
    ("node", "held", "state"),
    [
        (a_node(ready=False), frozenset(), BoardState.NOT_READY),
        (a_node(schedulable=False), frozenset(), BoardState.CORDONED),
        (a_node(unreachable=True, ready=False), frozenset(), BoardState.UNREACHABLE),
        (a_node(slots=0), frozenset(), BoardState.NO_RESOURCE),
        (a_node(taints=(("own", "", "NoSchedule"),)), frozenset(), BoardState.TAINTED),
        (a_node(taints=(("own", "", "NoExecute"),)), frozenset(), BoardState.TAINTED),
        (a_node(), frozenset({"board-1"}), BoardState.HELD),
    ],
)
def test_cordoned_dead_and_held_boards_offer_nothing(
    node: Node, held: frozenset[str], state: BoardState
) -> None:
    slots = slots_of([node], held=held)
    assert slots.count(X) == 0
    assert slots.take(X) is None
    assert slots.boards(X) == Boards(total=1, usable=0, states={state: 1})


@pytest.mark.parametrize(
    ("pod", "free"),
    [
        (a_pod(phase=PodPhase.RUNNING), 0),
        (a_pod(phase=PodPhase.PENDING), 0),
        (a_pod(phase=PodPhase.UNKNOWN), 0),
        (a_pod(deleting_since=NOW), 0),
        (a_pod(phase=PodPhase.SUCCEEDED), 1),
        (a_pod(phase=PodPhase.FAILED), 1),
        (a_pod(slots=0), 1),
        (a_pod(node="elsewhere"), 1),
        (a_pod(node=None, phase=PodPhase.PENDING), 0),
        (a_pod(node=None, phase=PodPhase.PENDING, selector={BOARD: "y"}), 1),
        (a_pod(node=None, phase=PodPhase.PENDING, selector={}), 0),
    ],
)
def test_every_pod_that_has_not_ended_takes_its_slot(pod: Pod, free: int) -> None:
    assert slots_of([a_node()], [pod]).count(X) == free


def test_slots_are_counted_by_what_they_are_doing() -> None:
    nodes = [a_node("a", slots=4), a_node("b", slots=4, ready=False), a_node("c", slots=0)]
    slots = slots_of(nodes, [a_pod(node="a"), a_pod("two", node="a")], claims=[Claim(X)])
    assert slots.slots(X) == {
        "busy": 2,
        "promised": 1,
        "free": 1,
        "held": 0,
        "not_ready": 4,
        "no_resource": 1,
    }
    assert slots.boards(X).states == {"free": 1, "not_ready": 1, "no_resource": 1}


def test_a_board_whose_slots_are_promised_says_so() -> None:
    slots = slots_of([a_node("a"), a_node("b")], [a_pod(node="a")], claims=[Claim(X)])
    assert slots.boards(X) == Boards(2, 2, {BoardState.BUSY: 1, BoardState.PROMISED: 1})


def test_what_a_board_on_trial_may_not_offer_is_held() -> None:
    view, pods = NodeView({"a": a_node("a", slots=4)}, 1), PodView({"pod": a_pod(node="a")}, 1)
    slots = free_slots(view, pods, (), frozenset(), offers={"a": 2})
    assert slots.slots(X) == {"busy": 1, "free": 1, "held": 2}


def test_a_pod_takes_as_many_slots_as_it_asks_for() -> None:
    assert slots_of([a_node(slots=4)], [a_pod(slots=3)]).count(X) == 1


def test_a_worker_whose_pod_was_not_seen_yet_holds_a_slot() -> None:
    assert slots_of([a_node("a"), a_node("b")], claims=[Claim(X)]).count(X) == 1


def test_a_claim_that_fits_nowhere_takes_nothing() -> None:
    assert slots_of([a_node()], claims=[Claim({BOARD: "y"})]).count(X) == 1


def test_a_claim_goes_behind_a_taint_only_if_it_tolerates_it() -> None:
    tainted = a_node(taints=(("own", "", "NoSchedule"),))
    assert slots_of([tainted], claims=[Claim(X)]).count(X, ANY_TAINT) == 1
    assert slots_of([tainted], claims=[Claim(X, ANY_TAINT)]).count(X, ANY_TAINT) == 0


def test_an_unplaced_pod_is_counted_where_any_pod_may_go_before_a_tainted_board() -> None:
    nodes = [a_node("a", taints=(("own", "", "NoSchedule"),)), a_node("b")]
    slots = slots_of(nodes, [a_pod(node=None)])
    assert (slots.count(X), slots.count(X, ANY_TAINT)) == (0, 1)


def test_taking_leaves_the_first_map_as_it_was() -> None:
    before = slots_of([a_node()])
    taken = before.take(X)
    assert taken is not None
    name, after = taken
    assert (name, before.count(X), after.count(X)) == ("board-1", 1, 0)
    assert after.take(X) is None
    assert before.take(X) is not None
    assert after.boards(X).states == {BoardState.PROMISED: 1}


def test_the_board_that_fewest_pools_want_is_given_away_first() -> None:
    nodes = [a_node("a", X_ZONE_A), a_node("b", X)]
    slots = slots_of(nodes, pools=[Claim(X), Claim(X_ZONE_A)])
    first = slots.take(X)
    assert first is not None
    assert first[0] == "b"
    second = first[1].take(X_ZONE_A)
    assert second is not None
    assert second[0] == "a"


def test_choosy_claims_are_placed_before_easy_ones() -> None:
    nodes = [a_node("a", X_ZONE_A), a_node("b", X)]
    for claims in ([Claim(X), Claim(X_ZONE_A)], [Claim(X_ZONE_A), Claim(X)]):
        assert slots_of(nodes, claims=claims).count(X) == 0


def test_boards_say_what_holds_them() -> None:
    nodes = [
        a_node("free"),
        a_node("busy"),
        a_node("held"),
        a_node("dead", ready=False, unreachable=True),
        a_node("other", {BOARD: "y"}),
    ]
    boards = slots_of(nodes, [a_pod(node="busy")], held=frozenset({"held"})).boards(X)
    assert boards == Boards(
        total=4,
        usable=2,
        states={
            BoardState.FREE: 1,
            BoardState.BUSY: 1,
            BoardState.HELD: 1,
            BoardState.UNREACHABLE: 1,
        },
    )


@pytest.mark.parametrize(
    ("raw", "covers"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "own", "operator": "Exists"}, True),
        ({"key": "own", "value": "us"}, True),
        ({"key": "own", "value": "us", "effect": "NoSchedule"}, True),
        ({"key": "own", "value": "us", "effect": "NoExecute"}, False),
        ({"key": "own", "value": "them"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "own", "operator": "Exists", "tolerationSeconds": 5}, True),
    ],
)
def test_tolerations_follow_kubernetes_rules(raw: dict[str, object], covers: bool) -> None:
    assert Toleration.of(raw).covers("own", "us", "NoSchedule") is covers
    tainted = a_node(taints=(("own", "us", "NoSchedule"),))
    assert slots_of([tainted]).count(X, [Toleration.of(raw)]) == int(covers)


def test_a_preference_keeps_nobody_off() -> None:
    assert slots_of([a_node(taints=(("own", "", "PreferNoSchedule"),))]).count(X) == 1


labels = st.sampled_from([X, X_ZONE_A, {BOARD: "y"}, {BOARD: "y", "zone": "a"}, {}])
selectors = st.sampled_from([X, X_ZONE_A, {"zone": "a"}, {BOARD: "y"}, {}])
tolerances = st.sampled_from([(), ANY_TAINT])
taints = st.sampled_from([(), (("own", "", "NoSchedule"),)])
names = st.integers(0, 7).map(lambda n: f"n{n}")
nodes_drawn = st.lists(
    st.builds(
        a_node,
        name=names,
        labels=labels,
        ready=st.booleans(),
        schedulable=st.booleans(),
        unreachable=st.booleans(),
        slots=st.integers(0, 3),
        taints=taints,
    ),
    unique_by=lambda node: node.name,
    max_size=8,
)
pods_drawn = st.lists(
    st.builds(
        a_pod,
        name=st.integers(0, 30).map(str),
        node=st.none() | names,
        phase=st.sampled_from(list(PodPhase)),
        slots=st.integers(0, 2),
        selector=selectors,
    ),
    unique_by=lambda pod: pod.name,
    max_size=10,
)
claims_drawn = st.lists(st.builds(Claim, selectors, tolerances), max_size=4)
held_drawn = st.frozensets(names, max_size=3)


@given(
    nodes_drawn, pods_drawn, claims_drawn, held_drawn, st.lists(st.tuples(selectors, tolerances), max_size=40)
)
def test_pools_that_overlap_never_promise_one_board_twice(
    nodes: list[Node],
    pods: list[Pod],
    claims: list[Claim],
    held: frozenset[str],
    wishes: list[tuple[Mapping[str, str], tuple[Toleration, ...]]],
) -> None:
    slots = slots_of(nodes, pods, claims, held, [Claim(*wish) for wish in wishes[:3]])
    by_name = {node.name: node for node in nodes}
    promised: Counter[str] = Counter()
    for pod in pods:
        if pod.node is not None and not pod.phase.ended:
            promised[pod.node] += pod.slots
    for selector, tolerations in wishes:
        expected = slots.count(selector, tolerations)
        taken = slots.take(selector, tolerations)
        assert (taken is None) == (expected == 0)
        if taken is None:
            continue
        name, slots = taken
        node = by_name[name]
        promised[name] += 1
        assert promised[name] <= node.slots
        assert selector.items() <= node.labels.items()
        assert node.ready
        assert node.schedulable
        assert not node.unreachable
        assert name not in held
        assert not node.taints or tolerations
        assert slots.count(selector, tolerations) == expected - 1


@given(nodes_drawn, pods_drawn, claims_drawn, held_drawn, selectors)
def test_free_never_exceeds_what_usable_boards_offer(
    nodes: list[Node],
    pods: list[Pod],
    claims: list[Claim],
    held: frozenset[str],
    selector: Mapping[str, str],
) -> None:
    slots = slots_of(nodes, pods, claims, held)
    usable = [
        node
        for node in nodes
        if node.ready and node.schedulable and not node.unreachable and node.name not in held
    ]
    offered = sum(node.slots for node in usable if selector.items() <= node.labels.items())
    assert 0 <= slots.count(selector, ANY_TAINT) <= offered
    boards = slots.boards(selector)
    assert boards.usable <= boards.total == sum(boards.states.values())


def test_a_thousand_takes_look_at_each_board_once() -> None:
    nodes = [a_node(f"n{n}", X_ZONE_A if n % 2 else X) for n in range(1000)]
    slots = slots_of(nodes, pools=[Claim(X), Claim(X_ZONE_A)])
    taken = []
    while (step := slots.take(X)) is not None:
        taken.append(step[0])
        slots = step[1]
    assert sorted(taken) == sorted(node.name for node in nodes)
    assert all(slots.take(X) is None for _ in range(10_000))
