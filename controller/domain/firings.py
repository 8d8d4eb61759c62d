"""What is decided when a schedule's time has come, and on what."""

from dataclasses import dataclass
from datetime import datetime

from controller.domain.schedules import Planned, ScheduleSkip


@dataclass(frozen=True, slots=True)
class Pressure:
    """What is under way already."""

    predecessor: bool = False  # an occurrence of the same schedule is pending or running
    full: bool = False  # as many occurrences are open as may be


@dataclass(frozen=True, slots=True)
class Firing:
    """What becomes of the times that have come."""

    fire: tuple[datetime, ...] = ()
    stands_for: int = 1  # how many times the (one) firing makes good
    skipped: tuple[datetime, ...] = ()
    reason: ScheduleSkip | None = None
    missed: tuple[datetime, ...] = ()  # each gets a row and an event of its own
    missed_besides: int = 0  # these are only counted
    counted: bool = True  # False: there were even more
    planned: Planned | None = None
    disable: bool = False
