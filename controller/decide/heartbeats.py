"""Heartbeats: which live workers were seen, and how the slots of each pool are used. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator

from controller.decide.capacity import BoardState, SlotMap, Toleration
from controller.domain.heartbeats import Beat, PoolSnapshot
from controller.domain.pools import Catalogue
from controller.domain.sightings import PodView
from controller.domain.workers import Worker


def find_beats(workers: Iterable[Worker], pods: PodView) -> Iterator[Beat]:
    """The live workers whose pod the view shows; the others are silent."""
    for worker in workers:
        pod = pods.pods.get(worker.name)
        if pod is None or not worker.status.live:
            continue
        if worker.bound:
            yield Beat(worker.name, pod.phase.value, online=True, busy=True)
        elif worker.read_at is None:
            yield Beat(worker.name, pod.phase.value, online=None, busy=None)
        else:
            online = worker.idle_since is not None
            yield Beat(worker.name, pod.phase.value, online=online, busy=worker.not_busy_since is None)


def snapshot_pools(slots: SlotMap, catalogue: Catalogue) -> Iterator[PoolSnapshot]:
    """Count the slots of every pool by what they are doing; a board type that pools share is counted for each.

    What is promised to a worker is in use: nobody else gets it.
    """
    for pool in catalogue.pools:
        tolerations = [Toleration.of(raw) for raw in pool.tolerations]
        found = Counter(slots.slots(pool.selector, tolerations))
        yield PoolSnapshot(
            pool=pool.name,
            slots=found.total() - found[BoardState.NO_RESOURCE],
            free=found[BoardState.FREE],
            busy=found[BoardState.BUSY] + found[BoardState.PROMISED],
            held=found[BoardState.HELD],
            unreachable=found[BoardState.UNREACHABLE],
        )
