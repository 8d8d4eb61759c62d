"""How an attempt to get an installation's token went."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AuthOutcome(StrEnum):
    """The words of the log: `auth_attempt.ok` and so on."""

    OK = "ok"
    NOT_FOUND = "not_found"
    SUSPENDED = "suspended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AuthAttempt:
    """One attempt."""

    app_id: str
    installation_id: int
    outcome: AuthOutcome
    at: datetime
    error: str = ""
