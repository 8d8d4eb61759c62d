"""What happens to a job once and is counted once: seen, started, ended."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A queued job was stored."""

    queued_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class JobStarted:
    """A runner took the job."""

    pool: str | None
    queued_at: datetime
    started_at: datetime


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The job ended: GitHub's conclusion, or why it was lost."""

    pool: str | None
    conclusion: str | None


Milestone = JobSeen | JobStarted | JobEnded


def unnoticed(milestone: Milestone) -> None:
    """For those who count nothing."""
