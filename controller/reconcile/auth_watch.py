"""Keeps how authentications went: failures leave an event, from which demand_match learns of suspensions."""

from controller.domain.auth import AuthAttempt
from controller.ports import AuthAttempts, Clock


class AuthWatch:
    """One step of the loop; the gateway tells it of every attempt."""

    def __init__(self, rows: AuthAttempts, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._noted: dict[tuple[str, int], AuthAttempt] = {}

    def note(self, attempt: AuthAttempt) -> None:
        """Remember the latest attempt of an installation until the next iteration."""
        self._noted[attempt.app_id, attempt.installation_id] = attempt

    async def run(self, epoch: int) -> None:
        """Write down what was noted; if that fails, it stays noted."""
        if not self._noted:
            return
        noted = dict(self._noted)
        await self._rows.keep(noted.values(), epoch, self._clock.now())
        self._noted = {key: each for key, each in self._noted.items() if noted.get(key) is not each}
