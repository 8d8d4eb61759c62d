"""What the core needs from outside, as Protocols. Implementations are in `gateways`, chosen in `app`."""

from controller.domain.budgets import Budget
from controller.ports.outside import (
    Clock,
    Cluster,
    CreatedPod,
    GitHub,
    JitRunner,
    Random,
    Secret,
)
from controller.ports.store import (
    AuthAttempts,
    Boards,
    Breakers,
    Deliveries,
    Demand,
    Heartbeats,
    Jobs,
    LockedWorkers,
    Moves,
    Retention,
    Stuck,
    Unheard,
    Workers,
)

__all__ = [
    "AuthAttempts",
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
    "Moves",
    "Random",
    "Retention",
    "Secret",
    "Stuck",
    "Unheard",
    "Workers",
]
