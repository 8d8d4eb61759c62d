"""Heartbeats: what is written once a minute of every live worker and of every pool."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Beat:
    """One live worker as it was seen. `online` None: GitHub has not been asked about its runner."""

    name: str
    phase: str
    online: bool | None
    busy: bool | None


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """A row of `board_snapshots`, but for the queue, which the store counts itself."""

    pool: str
    slots: int
    free: int
    busy: int
    held: int
    unreachable: int
