"""Boards whose hold is over but that have not shown since that they work: each is tried by one worker. Pure.

A board with one slot is tried by one worker anyway; this is about boards that offer several.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from controller.domain.sightings import NodeView, PodView
from controller.domain.workers import Worker


@dataclass(frozen=True, slots=True)
class Probes:
    """What demand_match goes by."""

    nodes: NodeView  # a board that may be tried offers one slot
    closed: frozenset[str]  # a worker is trying them, or may be about to
    tried: frozenset[str]  # only the step that takes their one slot may go there


def place_probes(
    nodes: NodeView, pods: PodView, workers: Iterable[Worker], probing: frozenset[str]
) -> Probes:
    """Leave one slot on every board that is to be tried, none where somebody tries already."""
    several = frozenset(n for n in probing if n in nodes.nodes and nodes.nodes[n].slots > 1)
    if not several:
        return Probes(nodes, frozenset(), frozenset())
    unproven = [worker for worker in workers if worker.free and worker.online_at is None]
    trying = frozenset(w.node for w in unproven if w.node is not None and w.node in several)
    closed = several if any(worker.node is None for worker in unproven) else trying
    used = Counter(pod.node for pod in pods.pods.values() if pod.slots > 0 and not pod.phase.ended)
    offers = {
        name: replace(node, slots=min(node.slots, used[name] + 1)) if name in several else node
        for name, node in nodes.nodes.items()
    }
    return Probes(NodeView(offers, nodes.resource_version), closed, several - closed)
