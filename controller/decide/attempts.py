"""What a failed worker means for the job it was made for: try again, wait, or give up. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.domain.constants import (
    BACK_OFF_FIRST,
    BACK_OFF_LAST,
    NOT_PICKED_UP_AFTER,
    OWN_FAULT_ATTEMPTS,
)
from controller.domain.reasons import EXPLANATIONS, Reason


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a job stands after a failed attempt."""

    attempts: int
    own_faults: int
    retry_after: datetime | None
    gave_up: bool


def after_failure(
    attempts: int,
    own_faults: int,
    reason: Reason,
    now: datetime,
    *,
    own_fault: bool,
    idle_since: datetime | None = None,
) -> Attempt | None:
    """Count one more failure; None when this ending is nobody's fault.

    A runner that was online and idle while its job stayed queued was not picked up: the next would not be either.
    """
    ignored = idle_since is not None and now - idle_since >= NOT_PICKED_UP_AFTER
    if not EXPLANATIONS[reason].backs_off and not ignored:
        return None
    attempts, own_faults = attempts + 1, own_faults + int(own_fault)
    wait = back_off(attempts + 1 if ignored else attempts)
    return Attempt(attempts, own_faults, now + wait if wait else None, own_faults >= OWN_FAULT_ATTEMPTS)


def back_off(attempts: int) -> timedelta | None:
    """The first failure is tried again at once, later ones after 1, 2, 4 … 30 min."""
    if attempts < 2:
        return None
    return min(BACK_OFF_FIRST * float(2 ** min(attempts - 2, 10)), BACK_OFF_LAST)
