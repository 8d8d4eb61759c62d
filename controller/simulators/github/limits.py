"""Rate limits: a primary bucket per installation (and per App for JWTs), and secondary limits per minute."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from controller.ports import Clock
from controller.simulators.github.auth import Caller
from controller.simulators.github.errors import ApiError

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
Who = tuple[str, int]  # ("installation", id) or ("app", id)


@dataclass(slots=True)
class Bucket:
    """What is used of an hour's requests."""

    limit: int
    used: int
    resets_at: datetime

    @property
    def remaining(self) -> int:
        """Never below zero."""
        return max(0, self.limit - self.used)


def who_is(caller: Caller) -> Who:
    """Whose bucket a request is counted in."""
    if caller.installation is not None:
        return "installation", caller.installation.id
    return "app", caller.app.id


class Limits:
    """Counts and refuses. Fields are open to tests: numbers, status (403 or 429), retry-after or not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.core = 5_000
        self.points_per_minute = 900  # per operation: GET 1, writes 5
        self.concurrent = 100
        self.primary_status = 403
        self.secondary_status = 403
        self.primary_retry_after = False
        self.secondary_retry_after = True
        self._buckets: dict[Who, Bucket] = {}
        self._points: dict[tuple[Who, str], tuple[datetime, int]] = {}
        self._tripped: dict[Who, datetime] = {}
        self.in_flight: dict[Who, int] = defaultdict(int)

    def bucket(self, who: Who) -> Bucket:
        """The bucket of this hour."""
        now = self._clock.now()
        bucket = self._buckets.get(who)
        if bucket is None or now >= bucket.resets_at:
            bucket = self._buckets[who] = Bucket(self.core, 0, now + HOUR)
        bucket.limit = self.core
        return bucket

    def exhaust(self, installation_id: int, *, leave: int = 0) -> None:
        """Use up an installation's requests but for `leave`."""
        bucket = self.bucket(("installation", installation_id))
        bucket.used = bucket.limit - leave

    def trip_secondary(self, installation_id: int, duration: timedelta = MINUTE) -> None:
        """Refuse an installation for a while, as a secondary limit does."""
        self._tripped[("installation", installation_id)] = self._clock.now() + duration

    def check(self, caller: Caller, operation: str, method: str) -> None:
        """Refuse the request if a limit is reached; nothing has happened then."""
        who = who_is(caller)
        now = self._clock.now()
        tripped = self._tripped.get(who)
        if tripped is not None and now < tripped:
            raise self._secondary(tripped)
        if self.in_flight[who] > self.concurrent:
            raise self._secondary(now + MINUTE)
        began, points = self._points.get((who, operation), (now, 0))
        if now - began >= MINUTE:
            began, points = now, 0
        points += 1 if method == "GET" else 5
        if points > self.points_per_minute:
            raise self._secondary(began + MINUTE)
        self._points[(who, operation)] = (began, points)
        bucket = self.bucket(who)
        if bucket.remaining == 0 and operation != "rate-limit/get":
            raise self._primary(bucket)

    def headers(self, caller: Caller) -> dict[str, str]:
        """What each answer says of the bucket."""
        bucket = self.bucket(who_is(caller))
        return {
            "x-ratelimit-limit": str(bucket.limit),
            "x-ratelimit-remaining": str(bucket.remaining),
            "x-ratelimit-used": str(min(bucket.used, bucket.limit)),
            "x-ratelimit-reset": str(int(bucket.resets_at.timestamp())),
            "x-ratelimit-resource": "core",
        }

    def count(self, caller: Caller, operation: str, status: int) -> None:
        """Count an answered request; a 304 and the rate-limit query are free."""
        if status != 304 and operation != "rate-limit/get":
            self.bucket(who_is(caller)).used += 1

    def _primary(self, bucket: Bucket) -> ApiError:
        wait = int((bucket.resets_at - self._clock.now()).total_seconds()) + 1
        headers = {"retry-after": str(wait)} if self.primary_retry_after else {}
        return ApiError(self.primary_status, "API rate limit exceeded for installation.", headers=headers)

    def _secondary(self, until: datetime) -> ApiError:
        wait = ceil((until - self._clock.now()).total_seconds())  # never a moment too short
        headers = {"retry-after": str(wait)} if self.secondary_retry_after else {}
        return ApiError(
            self.secondary_status,
            "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
            headers=headers,
        )
