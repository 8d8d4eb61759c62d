"""Every REST request that was answered or cut, for tests that count requests."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """One request; `status` 0 means that the connection was cut."""

    at: datetime
    method: str
    path: str
    query: str
    operation: str
    app_id: int | None
    installation_id: int | None
    status: int

    @property
    def not_modified(self) -> bool:
        """Whether it was a 304, which costs nothing of the primary limit."""
        return self.status == 304


class RequestLog(list[SeenRequest]):
    """A list that can be asked how often."""

    def matching(
        self, operation: str | None = None, *, installation_id: int | None = None, status: int | None = None
    ) -> list[SeenRequest]:
        """The requests of an operation, an installation, a status; None means any."""
        return [
            each
            for each in self
            if operation in (None, each.operation)
            and installation_id in (None, each.installation_id)
            and status in (None, each.status)
        ]

    def times(
        self, operation: str | None = None, *, installation_id: int | None = None, status: int | None = None
    ) -> int:
        """How many there were."""
        return len(self.matching(operation, installation_id=installation_id, status=status))
