"""Quiet hours: wall-clock times of every day that may wrap midnight. Pure."""

from datetime import UTC, datetime, timedelta

from controller.decide.slots import check_timezone
from controller.domain.schedules import QuietHours

DAY = timedelta(days=1)


def is_quiet(hours: QuietHours, at: datetime) -> bool:
    """Whether a moment lies in the quiet hours; their first minute does, their last does not."""
    local = at.astimezone(check_timezone(hours.timezone)).time().replace(tzinfo=None)
    if hours.start < hours.end:
        return hours.start <= local < hours.end
    return local >= hours.start or local < hours.end


def quiet_until(hours: QuietHours, now: datetime) -> datetime | None:
    """When the quiet hours that are in force end; None if none are."""
    return _next(hours, now, start=False) if is_quiet(hours, now) else None


def next_change(hours: QuietHours, now: datetime) -> datetime:
    """When quiet hours next begin or end."""
    return _next(hours, now, start=not is_quiet(hours, now))


def _next(hours: QuietHours, now: datetime, *, start: bool) -> datetime:
    """The next moment at which the wall clock passes the time; one that a spring night leaves out comes late."""
    zone = check_timezone(hours.timezone)
    today = now.astimezone(zone).date()
    for day in (today, today + DAY, today + 2 * DAY):
        wall = datetime.combine(day, hours.start if start else hours.end)
        for fold in (0, 1):
            moment = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
            # In the night that has the hour twice the second one may be the change that is still to come.
            if moment > now and is_quiet(hours, moment) is start:
                return moment
    return now + DAY
