"""Rate limits, the deciding half: what an answer says about when the next request may be sent.

Pure. The order of the rules is GitHub's own: `retry-after`, then `remaining == 0`, then the secondary limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

SECONDARY_FIRST = timedelta(seconds=60)
SECONDARY_LONGEST = timedelta(hours=1)
LONGEST_WAIT = timedelta(
    hours=2
)  # GitHub's windows last an hour: anything above is a mistake or a wrong clock
SHORTEST_WAIT = timedelta(seconds=1)
LIMIT_WORDS = ("rate limit", "abuse detection")
CORE = "core"


@dataclass(frozen=True, slots=True)
class Quota:
    """What the `x-ratelimit-*` headers say of the hourly quota."""

    limit: int
    remaining: int
    resets_at: datetime
    resource: str = CORE


@dataclass(frozen=True, slots=True)
class Limited:
    """Send nothing before `until`; `secondary` ones double with every repetition."""

    until: datetime
    secondary: bool = False


def read_quota(headers: Mapping[str, str], now: datetime) -> Quota | None:
    """Read the quota headers; None where they are missing (GHES) or make no sense."""
    limit = _count(headers.get("x-ratelimit-limit"))
    remaining = _count(headers.get("x-ratelimit-remaining"))
    reset = _count(headers.get("x-ratelimit-reset"))
    if limit is None or remaining is None or reset is None:
        return None
    # Clipped as a number: a huge one cannot be made a date.
    latest = int((now + LONGEST_WAIT).timestamp())
    resets_at = datetime.fromtimestamp(min(reset, latest), UTC)
    return Quota(limit, remaining, resets_at, headers.get("x-ratelimit-resource", CORE))


def find_limit(
    status: int, headers: Mapping[str, str], message: str, strikes: int, now: datetime
) -> Limited | None:
    """Say whether an answer is a rate limit, and until when; `strikes` counts the secondary ones in a row."""
    if status not in (403, 429):
        return None
    asked = _retry_after(headers.get("retry-after"), now)
    if asked is not None:
        return Limited(now + min(max(asked, SHORTEST_WAIT), LONGEST_WAIT))
    if _count(headers.get("x-ratelimit-remaining")) == 0:
        quota = read_quota(headers, now)
        if quota is not None and quota.resets_at > now:
            return Limited(quota.resets_at)
        # A reset in the past means that our clock is fast: wait as for a secondary limit rather than hammer.
        return Limited(now + SECONDARY_FIRST)
    if status == 429 or any(words in message.lower() for words in LIMIT_WORDS):
        return Limited(now + secondary_wait(strikes), secondary=True)
    return None


def secondary_wait(strikes: int) -> timedelta:
    """A minute, doubled for each secondary limit before in a row, at most an hour."""
    doublings: int = 2 ** min(strikes, 16)
    return min(SECONDARY_FIRST * doublings, SECONDARY_LONGEST)


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else None


def _retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Seconds, or (by the HTTP standard) a date."""
    if text is None:
        return None
    seconds = _count(text.strip())
    if seconds is not None:
        return min(timedelta(seconds=min(seconds, 10**9)), LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment - now if moment.tzinfo is not None else None
