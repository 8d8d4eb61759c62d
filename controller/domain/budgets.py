"""What is left of an installation's requests."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controller.domain.constants import JIT_PER_MINUTE


class Scarce(StrEnum):
    """What keeps an installation from being asked for another runner."""

    HOURLY = "hourly"  # GitHub's requests of the hour
    SECONDARY = "secondary"  # GitHub has asked for a pause
    PACE = "pace"  # our own, so that GitHub does not have to


@dataclass(frozen=True, slots=True)
class Budget:
    """What GitHub's last answers said. `limit` 0 means: no answer has told yet."""

    limit: int = 0
    remaining: int = 0
    resets_at: datetime | None = None
    blocked_until: datetime | None = None  # a rate-limit answer said so
    jit_allowance: int = JIT_PER_MINUTE  # JIT calls that pacing allows right now
