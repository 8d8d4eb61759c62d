"""Heartbeats: once a minute, every live worker that is seen and the slots of every pool; a step of the loop."""

from collections.abc import Callable
from datetime import datetime

from controller.decide.capacity import SlotMap
from controller.decide.heartbeats import find_beats, snapshot_pools
from controller.decide.pace import is_time
from controller.domain.constants import HEARTBEAT_EVERY
from controller.domain.pools import Catalogue
from controller.domain.sightings import Unknown
from controller.ports import Clock, Cluster, Heartbeats


class HeartbeatWatch:
    """One step of the loop."""

    def __init__(
        self,
        rows: Heartbeats,
        cluster: Cluster,
        matched: Callable[[], SlotMap | Unknown],
        clock: Clock,
        catalogue: Catalogue,
    ) -> None:
        self._rows = rows
        self._cluster = cluster
        self._matched = matched
        self._clock = clock
        self._catalogue = catalogue
        self._beat_at: datetime | None = None

    async def run(self, epoch: int) -> None:
        """Beat if a minute has passed; an unknown view is a missed beat, never an empty one."""
        now = self._clock.now()
        if not is_time(self._beat_at, HEARTBEAT_EVERY, now):
            return
        pods, slots = self._cluster.pods(), self._matched()
        if isinstance(pods, Unknown) or isinstance(slots, Unknown):
            return
        beats = tuple(find_beats(await self._rows.workers(), pods))
        await self._rows.beat(beats, tuple(snapshot_pools(slots, self._catalogue)), epoch, now)
        self._beat_at = now
