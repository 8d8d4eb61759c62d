"""What is left of an installation's requests."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Budget:
    """What GitHub's last answers said. `limit` 0 means: no answer has told yet."""

    limit: int = 0
    remaining: int = 0
    resets_at: datetime | None = None
    blocked_until: datetime | None = None  # a rate-limit answer said so
    jit_allowance: int = 150  # JIT calls that pacing allows right now
