"""The times of a schedule: cron in its zone, intervals, one moment. Pure; every answer is in UTC.

Cron follows the wall clock: a time that a spring night leaves out comes right after the gap, one that an autumn night
has twice comes once. Patterns such as `*/15 * * * *` go on through both nights by real time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from controller.domain.constants import SLOTS_COUNTED
from controller.domain.durations import parse_duration
from controller.domain.schedules import Definition, ScheduleType

SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
CRON_FIELDS = 5
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
LONGEST_INTERVAL = timedelta(days=366)
LOOK_BACK = tuple(timedelta(hours=hours) for hours in (1, 24, 24 * 8, 24 * 40, 24 * 400))


def check_timezone(name: str) -> ZoneInfo:
    """The zone of that name; ValueError says that there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise ValueError(f'"{name}" is no IANA time zone; expected a name such as Europe/Berlin') from None


def check_spec(kind: ScheduleType, spec: str, timezone: str) -> None:
    """ValueError says what is wrong with a spec of this type."""
    match kind:
        case ScheduleType.CRON:
            _cron(spec, datetime(2000, 1, 1, tzinfo=check_timezone(timezone)))
        case ScheduleType.INTERVAL:
            if parse_duration(spec) > LONGEST_INTERVAL:
                raise ValueError(f'expected at most {LONGEST_INTERVAL.days}d; got "{spec}"')
        case ScheduleType.ONE_SHOT:
            read_moment(spec, timezone)


def read_moment(text: str, timezone: str) -> datetime:
    """An ISO 8601 time; without an offset it is in the schedule's zone."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=check_timezone(timezone))
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f'expected a time such as 2026-12-01T08:00:00+01:00; got "{text}"') from None


def slots_after(definition: Definition, after: datetime) -> Iterator[datetime]:
    """The times later than `after`, in order, without end for cron and intervals."""
    match ScheduleType(definition.type):
        case ScheduleType.CRON:
            yield from _cron_after(definition, after)
        case ScheduleType.INTERVAL:
            step = parse_duration(definition.spec)
            while True:
                try:
                    after += step
                except OverflowError:
                    return
                yield after
        case ScheduleType.ONE_SHOT:
            moment = read_moment(definition.spec, definition.timezone)
            if moment > after:
                yield moment


def next_times(definition: Definition, after: datetime, count: int) -> tuple[datetime, ...]:
    """The next few times, for people to look at."""
    return tuple(islice(slots_after(definition, after), count))


@dataclass(frozen=True, slots=True)
class DueSlots:
    """Times that have come, oldest first. Not `complete`: some before the newest ones are left out."""

    times: tuple[datetime, ...]
    complete: bool


def due_slots(definition: Definition, first: datetime, now: datetime, newest: int) -> DueSlots:
    """All times from `first` to `now`; past SLOTS_COUNTED only the oldest and the newest ones are known."""
    found = [first]
    for slot in slots_after(definition, first):
        if slot > now:
            return DueSlots(tuple(found), complete=True)
        if len(found) >= SLOTS_COUNTED:
            break
        found.append(slot)
    else:
        return DueSlots(tuple(found), complete=True)
    last = _newest(definition, first, now, newest)
    return DueSlots((*found, *(slot for slot in last if slot > found[-1])), complete=False)


def _newest(definition: Definition, first: datetime, now: datetime, count: int) -> tuple[datetime, ...]:
    """The last few times up to now, found by looking back ever further."""
    found: list[datetime] = []
    for back in LOOK_BACK:
        begin = max(first, now - back)
        found = []
        for slot in slots_after(definition, begin):
            if slot > now:
                break
            found.append(slot)
        if len(found) >= count or begin == first:
            break
    return tuple(found[-count:])


def _cron_after(definition: Definition, after: datetime) -> Iterator[datetime]:
    spec, zone = _plain(definition.spec), check_timezone(definition.timezone)
    if any(field.startswith("*") for field in spec.split()[:2]):
        yield from _by_real_time(spec, zone, after)
        return
    last = after
    for at in _cron(spec, after.astimezone(zone)):
        slot = at.astimezone(UTC)
        # Two times of a gap fall together, and one within a repeated hour may lie before `after`.
        if slot > last:
            last = slot
            yield slot


def _by_real_time(spec: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Every minute at which the wall clock shows what is wanted; where it is changed, the search begins anew.

    CronSim goes by whole hours there, and loses times where the clock is changed by half an hour or at midnight.
    """
    at, offset = after.astimezone(UTC), _offset(zone, after)
    walls = _cron(spec, (at + offset).replace(tzinfo=None))
    while (wall := next(walls, None)) is not None:
        slot = wall.replace(tzinfo=UTC) - offset
        change = _clock_change(zone, offset, at, slot)
        if change is None:
            yield slot
            at = slot
        else:
            at, offset = change - SECOND, _offset(zone, change)
            walls = _cron(spec, (at + offset).replace(tzinfo=None))


def _clock_change(zone: ZoneInfo, offset: timedelta, at: datetime, until: datetime) -> datetime | None:
    """The first moment after `at`, and up to `until`, at which the zone is not that far from UTC any more."""
    while at < until:
        then = min(at + DAY, until)
        if _offset(zone, then) != offset:
            while then - at > SECOND:
                middle = at + (then - at) // 2
                at, then = (at, middle) if _offset(zone, middle) != offset else (middle, then)
            return then
        at = then
    return None


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()


def _plain(spec: str) -> str:
    """The expression that a shorthand stands for."""
    return SHORTHANDS.get(spec.strip().lower(), spec.strip())


def _cron(spec: str, start: datetime) -> Iterator[datetime]:
    """CronSim over the expression; ValueError for one that is wrong or never comes."""
    text = _plain(spec)
    if text.startswith("@"):
        raise ValueError(f'"{spec}" is no shorthand; expected one of {", ".join(SHORTHANDS)}')
    if len(text.split()) != CRON_FIELDS:
        raise ValueError(
            f'expected five fields (minute, hour, day of month, month, day of week), such as 0 8 * * 1-5; got "{spec}"'
        )
    try:
        next(CronSim(text, start))
        return CronSim(text, start)
    except CronSimError as error:
        raise ValueError(f'"{spec}" is no cron expression: {error}') from None
    except StopIteration:
        raise ValueError(f'"{spec}" never comes') from None
