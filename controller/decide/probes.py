"""Boards whose hold is over but that have not shown since that they work: each is tried by one worker. Pure.

A board with one slot is tried by one worker anyway; this is about boards that offer several.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller.decide.capacity import Claim
from controller.domain.sightings import Node, NodeView, Pod, PodView
from controller.domain.workers import Worker


@dataclass(frozen=True, slots=True)
class Probes:
    """What demand_match goes by."""

    offers: Mapping[str, int]  # slots that boards which may be tried offer: one beside those in use
    closed: frozenset[str]  # a worker is trying them, or may be about to
    tried: frozenset[str]  # only the step that takes their one slot may go there


def place_probes(
    nodes: NodeView,
    pods: PodView,
    workers: Iterable[Worker],
    probing: frozenset[str],
    claims: Mapping[str, Claim],
) -> Probes:
    """Leave one slot on every board that is to be tried, none where somebody tries already; claims are by pool."""
    several = frozenset(n for n in probing if n in nodes.nodes and nodes.nodes[n].slots > 1)
    if not several:
        return Probes({}, frozenset(), frozenset())
    unproven = [(pods.pods.get(w.name), w, claims.get(w.pool)) for w in workers if w.unproven]
    closed = frozenset(name for name in several if any(_may_be_on(nodes.nodes[name], *u) for u in unproven))
    used = Counter(pod.node for pod in pods.pods.values() if pod.slots > 0 and not pod.phase.ended)
    offers = {name: min(nodes.nodes[name].slots, used[name] + 1) for name in several}
    return Probes(offers, closed, several - closed)


def _may_be_on(node: Node, pod: Pod | None, worker: Worker, claim: Claim | None) -> bool:
    """Whether a worker is on a board or may still come to it."""
    where = worker.node or (pod.node if pod is not None else None)
    if where is not None:
        return where == node.name
    if pod is not None and node.name in pod.avoids:
        return False
    return claim is None or claim.fits(node)
