"""When a step that acts every so often acts again. Pure."""

from datetime import datetime, timedelta


def is_time(last: datetime | None, every: timedelta, now: datetime) -> bool:
    """Whether the last time is so far away: behind us, or before us since the clock was set back.

    Without the second a step would do nothing until the old time returns.
    """
    return last is None or abs(now - last) >= every
