"""What people may do to the queue by hand, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum

from controller.domain.holds import Hold, HoldScope
from controller.domain.jobs import Job


class JobAction(StrEnum):
    """What can be done to a pending job."""

    RETRY = "retry"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class By:
    """Who does something by hand, and why, if they say so."""

    who: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A pool by name, an entity by login in lower case, or a board by node."""

    scope: HoldScope
    name: str


@dataclass(frozen=True, slots=True)
class Acted:
    """A job after an action; `done` is False if it was no longer pending, so that nothing was changed."""

    job: Job
    done: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What holds a target now."""

    target: Target
    holds: tuple[Hold, ...]
