"""How workers ended lately, or showed that they work: what the breaker judges boards and images by."""

from dataclasses import dataclass
from datetime import datetime

from controller.domain.reasons import EXPLANATIONS, Reason


@dataclass(frozen=True, slots=True)
class Ending:
    """One worker's end, or its runner's first sign of life."""

    worker: str
    pool: str
    node: str | None
    at: datetime
    reason: Reason | None  # None: it did its work
    proven: bool  # its runner was seen online, or had a job
    image: str = ""

    @property
    def good(self) -> bool:
        """Whether it shows that board and image work."""
        return self.proven or self.reason is None

    @property
    def bad(self) -> bool:
        """Whether it makes board or image suspect; idle, cancelled and unreachable endings say nothing."""
        return not self.good and self.reason is not None and EXPLANATIONS[self.reason].trips_breaker

    @property
    def names_image(self) -> bool:
        """Whether the image is the suspect, whatever the board."""
        return self.bad and self.reason is not None and EXPLANATIONS[self.reason].names_image
