"""Demand and supply as the rows say, at one moment."""

from dataclasses import dataclass, field

from controller.domain.holds import Holds
from controller.domain.jobs import Job
from controller.domain.schedules import Floor
from controller.domain.workers import Worker


@dataclass(frozen=True, slots=True)
class Supply:
    """What demand_match reads."""

    jobs: tuple[Job, ...]  # pending, oldest first
    workers: tuple[Worker, ...]  # live, or still holding a pod
    running: int = 0  # jobs
    holds: Holds = field(default_factory=Holds)
    suspended: frozenset[int] = frozenset()  # installations
    floors: tuple[Floor, ...] = ()  # warm windows, open or ended moments ago
