"""Free slots: which boards can take one more runner. Pure; `demand_match` asks here before every step.

Slots belong to nodes. Every step takes a concrete one, so pools that overlap never promise one board twice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from controller.domain.sightings import Node, NodeView, PodView

KEEPS_PODS_OFF = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration, with Kubernetes' rules for what is left out."""

    key: str = ""  # empty with Exists: every taint
    operator: str = "Equal"
    value: str = ""
    effect: str = ""  # empty: every effect

    @classmethod
    def of(cls, raw: Mapping[str, object]) -> "Toleration":
        """Read one as it stands in a pod or in the settings."""
        return cls(
            key=str(raw.get("key") or ""),
            operator=str(raw.get("operator") or "Equal"),
            value=str(raw.get("value") or ""),
            effect=str(raw.get("effect") or ""),
        )

    def covers(self, key: str, value: str, effect: str) -> bool:
        """Whether a pod with this toleration may go onto a node with that taint."""
        if self.effect and self.effect != effect:
            return False
        if self.operator == "Exists":
            return self.key in ("", key)
        return self.key == key and self.value == value


@dataclass(frozen=True, slots=True)
class Claim:
    """Where a pod may go: that of a reserved worker not yet seen, or of any worker of a pool."""

    selector: Mapping[str, str]
    tolerations: Sequence[Toleration] = ()

    def fits(self, node: Node) -> bool:
        """Whether labels and taints of a node let it in."""
        wanted = self.selector.items()
        return _matches(node, wanted) and _blocking_taint(node, self.tolerations) is None


class BoardState(StrEnum):
    """What a board is doing, in the words of the `no_free_slots` explanation."""

    FREE = "free"
    BUSY = "busy"
    PROMISED = "promised"  # to a worker whose pod is not on it yet
    HELD = "held"
    NOT_READY = "not_ready"
    CORDONED = "cordoned"
    UNREACHABLE = "unreachable"
    NO_RESOURCE = "no_resource"
    TAINTED = "tainted"


USABLE = (BoardState.FREE, BoardState.BUSY, BoardState.PROMISED)
EVERYTHING: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Boards:
    """The boards of one kind: how many there are, how many could work, and what each is doing."""

    total: int
    usable: int
    states: Mapping[BoardState, int]


_Key = tuple[tuple[tuple[str, str], ...], tuple[Toleration, ...]]


@dataclass(frozen=True, slots=True)
class _Fleet:
    """The nodes of one view and who may go where; shared by all maps made from it."""

    nodes: Mapping[str, Node]
    held: frozenset[str]
    rank: Mapping[str, int]  # how many pools could use the node; the least wanted is given away first
    used: Mapping[str, int] = field(default_factory=dict)  # slots that pods on the node take
    pods: Mapping[str, str] = field(default_factory=dict)  # the first of these by name
    candidates: dict[_Key, tuple[str, ...]] = field(default_factory=dict)

    def usable(self, key: _Key) -> tuple[str, ...]:
        """The usable nodes for a selector and tolerations, least wanted first."""
        found = self.candidates.get(key)
        if found is None:
            selector, tolerations = key
            names = [
                node.name
                for node in self.nodes.values()
                if _matches(node, selector)
                and _offers(node, self.held)
                and _blocking_taint(node, tolerations) is None
            ]
            found = tuple(sorted(names, key=lambda name: (self.rank.get(name, 0), name)))
            self.candidates[key] = found
        return found


@dataclass(frozen=True, slots=True)
class SlotMap:
    """How many slots each usable node has left. Taking one gives a new map; this one stays as it is."""

    fleet: _Fleet
    left: Mapping[str, int]
    promised: Mapping[str, int] = field(
        default_factory=dict
    )  # slots of claims, of pods without a node, of steps
    # How far each kind's candidates are used up; slots only ever go, so no scan starts again from the front.
    cursors: dict[_Key, int] = field(default_factory=dict, compare=False)

    def take(
        self, selector: Mapping[str, str], tolerations: Sequence[Toleration] = ()
    ) -> "tuple[str, SlotMap] | None":
        """Take one slot of a concrete node, or None when no matching node has one left."""
        key = _key(selector, tolerations)
        name = self._first_free(key)
        return None if name is None else (name, self.promise([name]))

    def promise(self, nodes: Iterable[str]) -> "SlotMap":
        """Set one slot aside on each of these."""
        left, promised = dict(self.left), dict(self.promised)
        for name in nodes:
            left[name] -= 1
            promised[name] = promised.get(name, 0) + 1
        return SlotMap(self.fleet, left, promised, dict(self.cursors))

    def count(self, selector: Mapping[str, str], tolerations: Sequence[Toleration] = ()) -> int:
        """How many slots are left for a kind of pod."""
        return sum(self.left[name] for name in self.fleet.usable(_key(selector, tolerations)))

    def boards(self, selector: Mapping[str, str], tolerations: Sequence[Toleration] = ()) -> Boards:
        """Say what the boards of a kind are doing."""
        wanted = tuple(selector.items())
        states = Counter(
            self.state(node, tolerations) for node in self.fleet.nodes.values() if _matches(node, wanted)
        )
        return Boards(
            total=states.total(),
            usable=sum(states[state] for state in USABLE),
            states=dict(states),
        )

    def slots(
        self, selector: Mapping[str, str], tolerations: Sequence[Toleration] = ()
    ) -> Mapping[BoardState, int]:
        """Count the slots of a kind by what they are doing; a board that offers none counts as one."""
        wanted, found = tuple(selector.items()), Counter[BoardState]()
        for node in self.fleet.nodes.values():
            if not _matches(node, wanted):
                continue
            state = self.state(node, tolerations)
            if state not in USABLE:
                found[state] += max(1, node.slots)
                continue
            free, promised = self.free(node), self.promised.get(node.name, 0)
            used = min(node.slots - free - promised, self.fleet.used.get(node.name, 0))
            found += Counter({BoardState.FREE: free, BoardState.PROMISED: promised, BoardState.BUSY: used})
            found[BoardState.HELD] += node.slots - free - promised - used  # while one worker tries the board
        return found

    def free(self, node: Node) -> int:
        """How many slots of a node are left."""
        return self.left.get(node.name, 0)

    def state(self, node: Node, tolerations: Sequence[Toleration] = ()) -> BoardState:
        """What a board is doing, as far as pods with these tolerations are concerned."""
        if node.unreachable:
            return BoardState.UNREACHABLE
        if not node.ready:
            return BoardState.NOT_READY
        if not node.schedulable:
            return BoardState.CORDONED
        if node.name in self.fleet.held:
            return BoardState.HELD
        if _blocking_taint(node, tolerations) is not None:
            return BoardState.TAINTED
        if node.slots <= 0:
            return BoardState.NO_RESOURCE
        if self.left[node.name] > 0:
            return BoardState.FREE
        return BoardState.BUSY if self.fleet.used.get(node.name) else BoardState.PROMISED

    def _first_free(self, key: _Key) -> str | None:
        names = self.fleet.usable(key)
        start = self.cursors.get(key, 0)
        for position in range(start, len(names)):
            if self.left[names[position]] > 0:
                self.cursors[key] = position
                return names[position]
        self.cursors[key] = len(names)
        return None


def free_slots(
    nodes: NodeView,
    pods: PodView,
    claims: Sequence[Claim],
    held: frozenset[str],
    pools: Sequence[Claim] = (),
    offers: Mapping[str, int] = EVERYTHING,
) -> SlotMap:
    """Count what pods and claims leave on every usable node.

    `pools` tell which boards many want, `offers` of which boards only so many slots may be used.
    """
    used, first = Counter[str](), dict[str, str]()
    left = {
        node.name: min(node.slots, offers.get(node.name, node.slots))
        for node in nodes.nodes.values()
        if _offers(node, held)
    }
    unplaced: list[tuple[_Key, ...]] = [(_key(claim.selector, claim.tolerations),) for claim in claims]
    for pod in pods.pods.values():
        if pod.slots <= 0 or pod.phase.ended:
            continue
        if pod.node is None:
            unplaced.extend([_either_way(pod.node_selector)] * pod.slots)
        else:
            used[pod.node] += pod.slots
            first[pod.node] = min(pod.name, first.get(pod.node, pod.name))
            if pod.node in left:
                left[pod.node] = max(0, left[pod.node] - pod.slots)
    fleet = _Fleet(nodes.nodes, held, _rank(nodes, held, pools), used, first)
    return _place(SlotMap(fleet, left), unplaced)


def _place(slots: SlotMap, claims: Sequence[tuple[_Key, ...]]) -> SlotMap:
    """Give every claim a slot, the choosiest first; one that fits nowhere waits and takes none."""
    left = dict(slots.left)
    promised: Counter[str] = Counter()
    working = SlotMap(slots.fleet, left)
    for choices in sorted(claims, key=lambda choices: len(slots.fleet.usable(choices[-1]))):
        free = (working._first_free(key) for key in choices)
        name = next((name for name in free if name is not None), None)
        if name is not None:
            left[name] -= 1
            promised[name] += 1
    return SlotMap(slots.fleet, left, promised)


def _either_way(selector: Mapping[str, str]) -> tuple[_Key, ...]:
    """A sighted pod does not show its tolerations: it is placed where any pod may go, else behind a taint."""
    return _key(selector, ()), _key(selector, (Toleration(operator="Exists"),))


def _rank(nodes: NodeView, held: frozenset[str], pools: Sequence[Claim]) -> Mapping[str, int]:
    kinds = {_key(pool.selector, pool.tolerations) for pool in pools}
    fleet = _Fleet(nodes.nodes, held, {})
    return Counter(name for kind in kinds for name in fleet.usable(kind))


def _offers(node: Node, held: frozenset[str]) -> bool:
    return (
        node.slots > 0 and node.ready and node.schedulable and not node.unreachable and node.name not in held
    )


def _blocking_taint(node: Node, tolerations: Sequence[Toleration]) -> str | None:
    for key, value, effect in node.taints:
        if effect in KEEPS_PODS_OFF and not any(one.covers(key, value, effect) for one in tolerations):
            return key
    return None


def _matches(node: Node, selector: Iterable[tuple[str, str]]) -> bool:
    return all(node.labels.get(key) == value for key, value in selector)


def _key(selector: Mapping[str, str], tolerations: Sequence[Toleration]) -> _Key:
    return tuple(sorted(selector.items())), tuple(tolerations)
