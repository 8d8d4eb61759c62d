"""Keeps how authentications went: failures leave an event, from which demand_match learns of suspensions."""

from controller.domain.auth import AuthAttempt, AuthOutcome
from controller.ports import AuthAttempts, Clock


class AuthWatch:
    """One step of the loop; the gateway tells it of every attempt."""

    def __init__(self, rows: AuthAttempts, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._last: dict[tuple[str, int], AuthOutcome] = {}
        self._noted: list[AuthAttempt] = []

    def note(self, attempt: AuthAttempt) -> None:
        """Remember an attempt until the next iteration, unless it went as the one before."""
        who = attempt.app_id, attempt.installation_id
        if self._noted and self._last.get(who) is attempt.outcome:
            return
        self._last[who] = attempt.outcome
        self._noted.append(attempt)

    async def run(self, epoch: int) -> None:
        """Write down what was noted; if that fails, it stays noted."""
        if not self._noted:
            return
        noted = len(self._noted)
        await self._rows.keep(self._noted[:noted], epoch, self._clock.now())
        del self._noted[:noted]
