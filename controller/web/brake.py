"""A pause after wrong tokens, for each address they come from: guessing takes for ever, a typing mistake no time."""

from dataclasses import dataclass
from datetime import datetime, timedelta

FREE = 5  # wrong tokens that cost nothing
LONGEST = timedelta(seconds=30)
FORGOTTEN = timedelta(minutes=15)
ADDRESSES = 1_000  # remembered at once


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    last: datetime


class Brake:
    """Remembers who guessed wrong; in memory, and bounded."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failures] = {}

    def pause(self, address: str, now: datetime) -> timedelta:
        """How long nothing from there is judged."""
        known = self._failures.get(address)
        if known is None or known.count < FREE or not timedelta() <= now - known.last < FORGOTTEN:
            return timedelta()
        wait = min(LONGEST, timedelta(seconds=2.0 ** min(known.count - FREE, 10)))
        return max(timedelta(), known.last + wait - now)

    def note(self, address: str, now: datetime, *, right: bool) -> None:
        """What came of an attempt."""
        known = self._failures.pop(address, None)
        if right:
            return
        fresh = known is None or now - known.last >= FORGOTTEN
        self._failures[address] = _Failures(1 if known is None or fresh else known.count + 1, now)
        if len(self._failures) > ADDRESSES:
            del self._failures[next(iter(self._failures))]  # whoever was silent for longest
