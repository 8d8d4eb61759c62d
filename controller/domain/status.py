"""What the loop tells about itself; `/health`, `/ready` and the overview show it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from controller.domain.constants import HEALTH_LIMIT


@dataclass(frozen=True, slots=True)
class LoopSnapshot:
    """The loop at one moment."""

    leads: bool
    started_at: datetime  # of the process
    iterations: int
    last_iteration_at: datetime | None  # when an iteration last came to its end
    last_error: str | None
    role_since: datetime | None = None  # since when it leads or stands by; None: from the start
    receiver: bool = False  # there is no loop here
    unknown: tuple[str, ...] = ()  # what of the world outside cannot be known right now

    @property
    def role(self) -> str:
        """The word that `/ready` says."""
        if self.receiver:
            return "receiver"
        return "leader" if self.leads else "standby"

    def healthy(self, now: datetime) -> bool:
        """Whether a leader came round lately; one that stands by has nothing to come round with."""
        since = max(at for at in (self.started_at, self.role_since, self.last_iteration_at) if at is not None)
        return not self.leads or now - since <= HEALTH_LIMIT


class LoopStatus(Protocol):
    """Whoever knows how the loop is doing."""

    def snapshot(self) -> LoopSnapshot:
        """The loop as it is now."""
        ...


@dataclass(frozen=True, slots=True)
class NoLoop:
    """The status of a process that only receives deliveries."""

    started_at: datetime

    def snapshot(self) -> LoopSnapshot:
        """Always the same."""
        return LoopSnapshot(False, self.started_at, 0, None, None, receiver=True)
