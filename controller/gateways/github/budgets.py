"""Rate limits, the remembering half: a bucket per installation and per App, and the pace of JIT calls."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.domain.constants import JIT_PER_MINUTE
from controller.errors import RateLimited
from controller.gateways.github.answers import Answer
from controller.gateways.github.limits import CORE, LONGEST_WAIT, Limited, Quota, find_limit, read_quota
from controller.ports import Budget

JIT_INTERVAL = timedelta(minutes=1) / JIT_PER_MINUTE


@dataclass(slots=True)
class Pace:
    """A token bucket over time that is handed in: full at first, one call back every 0.4 s."""

    allowance: float = JIT_PER_MINUTE
    counted_at: datetime | None = None

    def available(self, now: datetime) -> float:
        """How many calls may be made now."""
        if self.counted_at is None:
            return self.allowance
        self.counted_at = min(self.counted_at, now)  # else a clock that was set back would count nothing
        return min(JIT_PER_MINUTE, self.allowance + (now - self.counted_at) / JIT_INTERVAL)

    def take(self, now: datetime) -> datetime | None:
        """Take one call, or say when there is one to take."""
        available = self.available(now)
        if available < 1:
            return now + JIT_INTERVAL * (1 - available)
        self.allowance, self.counted_at = available - 1, now
        return None


class Bucket:
    """What the answers to one caller (an installation, or an App with its JWT) have said so far."""

    def __init__(self, caller: str) -> None:
        self._caller = caller
        self._quota: Quota | None = None
        self._blocked_until: datetime | None = None
        self._strikes = 0
        self._pace = Pace()

    def check(self, now: datetime) -> None:
        """Raise RateLimited, without anything being sent, while a limit holds."""
        until = self._blocked(now)
        if until is not None:
            raise RateLimited(f"{self._caller} is rate limited until {until:%H:%M:%S} UTC", until=until)

    def take_jit_call(self, now: datetime) -> None:
        """Count one JIT call, or raise RateLimited until the pace allows one."""
        self.check(now)
        until = self._pace.take(now)
        if until is not None:
            raise RateLimited(f"{self._caller}: at most {JIT_PER_MINUTE} JIT calls a minute", until=until)

    def note(self, answer: Answer, now: datetime) -> Limited | None:
        """Learn from one answer; the limit it tells of, if any."""
        self._note_quota(answer, now)
        blocked = self._blocked(now) is not None
        limited = find_limit(answer.status, answer.headers, answer.message, self._strikes, now)
        if limited is not None:
            # Requests under way when the limit struck tell of it again: that is one strike, not many.
            if limited.secondary and not blocked:
                self._strikes += 1
            self._block(limited.until, now)
        elif answer.status < 400 and not blocked:
            self._strikes = 0
        return limited

    def budget(self, now: datetime) -> Budget:
        """The state as the core sees it."""
        blocked = self._blocked(now)
        allowance = int(self._pace.available(now))
        quota = self._quota
        if quota is None:
            return Budget(blocked_until=blocked, jit_allowance=allowance)
        # After the reset the old count is history; else a low budget would stay low until somebody asks.
        remaining = quota.remaining if now < quota.resets_at else quota.limit
        return Budget(quota.limit, remaining, quota.resets_at, blocked, allowance)

    def _note_quota(self, answer: Answer, now: datetime) -> None:
        quota = read_quota(answer.headers, now)
        if quota is None or quota.resource != CORE:
            return
        known = self._quota
        if known is None or now >= known.resets_at or quota.resets_at > known.resets_at:
            self._quota = quota
        elif quota.resets_at == known.resets_at:
            # Answers overtake each other; inside one window the smaller count is the newer one.
            self._quota = min(quota, known, key=lambda each: each.remaining)
        if quota.remaining == 0 and quota.resets_at > now:
            self._block(quota.resets_at, now)

    def _blocked(self, now: datetime) -> datetime | None:
        """Until when nothing may be sent; no limit lasts so long that it was not written by a clock set back since."""
        until = self._blocked_until
        return until if until is not None and now < until <= now + LONGEST_WAIT else None

    def _block(self, until: datetime, now: datetime) -> None:
        self._blocked_until = max(until, self._blocked(now) or until)
