"""What every page says at its top while nothing is decided, or not all: what, since when, and what to do.

Made from the state of this process's loop and, where another process leads, from what the database knows of it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.domain.constants import HEALTH_LIMIT
from controller.domain.pages import Leader
from controller.domain.status import LoopSnapshot

WHAT_TO_DO = (
    "Operators: `/ready` shows the last error, and `switchboard doctor` checks what an iteration needs."
)
SETTLING = timedelta(seconds=30)  # a process that has just started finds out who leads


@dataclass(frozen=True, slots=True)
class Alarm:
    """Why what the pages say may not come true."""

    state: str  # a word or two
    sentence: str
    since: datetime | None
    next_step: str = WHAT_TO_DO


def find_alarm(loop: LoopSnapshot, leader: Leader | None, now: datetime) -> Alarm | None:
    """What is wrong with the controller, the worst first; `leader` matters only where another process may lead."""
    if loop.leads:
        return _own(loop, now)
    if leader is None or not leader.present:
        if now - loop.started_at <= SETTLING:
            return None
        sentence = "No controller leads: nothing is decided, and no runner is made."
        return Alarm("no leader", sentence, leader.worked_at if leader else None)
    worked = max(leader.since, leader.worked_at or leader.since)
    if now - worked > HEALTH_LIMIT:
        return Alarm("stuck", f"The leader, {leader.holder}, no longer looks at the boards.", worked)
    return None


def _own(loop: LoopSnapshot, now: datetime) -> Alarm | None:
    if not loop.healthy(now):
        since = loop.last_iteration_at or loop.role_since or loop.started_at
        return Alarm("stuck", "The controller is stuck: no iteration comes to its end.", since)
    if loop.last_error is not None:
        sentence = "The last iteration ended with an error, so some of what is due may not happen."
        return Alarm("failing", sentence, loop.last_iteration_at)
    return None
