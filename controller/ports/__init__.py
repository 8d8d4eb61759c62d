"""What the core needs from outside, as Protocols. Implementations are in `gateways`, chosen in `app`."""

from controller.ports.outside import (
    Budget,
    Clock,
    Cluster,
    CreatedPod,
    GitHub,
    JitRunner,
    Random,
    Secret,
)
from controller.ports.store import (
    Boards,
    Breakers,
    Deliveries,
    Demand,
    Heartbeats,
    Jobs,
    LockedWorkers,
    Retention,
    Stuck,
    Workers,
)

__all__ = [
    "Boards",
    "Breakers",
    "Budget",
    "Clock",
    "Cluster",
    "CreatedPod",
    "Deliveries",
    "Demand",
    "GitHub",
    "Heartbeats",
    "JitRunner",
    "Jobs",
    "LockedWorkers",
    "Random",
    "Retention",
    "Secret",
    "Stuck",
    "Workers",
]
