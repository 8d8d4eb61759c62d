"""Daylight-saving nights in five zones: nothing twice, nothing lost, nothing that drifts."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.quiet_hours import is_quiet, next_change, quiet_until
from controller.decide.slots import check_spec, due_slots, slots_after
from controller.domain.schedules import QuietHours, ScheduleType
from tests.unit.decide.schedule_builders import NIGHTS, a_definition, at

ZONES = [zone for zone, *_ in NIGHTS]
MOMENTS = st.integers(0, 363 * 24 * 60).map(
    lambda minutes: at("2026-01-01 00:00") + timedelta(minutes=minutes)
)


def times(spec: str, zone: str, after: datetime, count: int) -> list[datetime]:
    return list(islice(slots_after(a_definition(spec, timezone=zone), after), count))


def times_until(spec: str, zone: str, after: datetime, end: datetime) -> list[datetime]:
    return list(takewhile(lambda slot: slot <= end, slots_after(a_definition(spec, timezone=zone), after)))


def hour_and_minute(clock: str) -> str:
    hour, minute = clock.split(":")
    return f"{int(minute)} {int(hour)} * * *"


@pytest.mark.parametrize(("zone", "spring", "_autumn", "missing", "_doubled"), NIGHTS, ids=ZONES)
def test_a_time_that_a_spring_night_leaves_out_comes_right_after_the_gap(
    zone: str, spring: str, _autumn: str, missing: str, _doubled: str
) -> None:
    eve = datetime.fromisoformat(f"{spring}T12:00").replace(tzinfo=ZoneInfo(zone)) - timedelta(days=1)
    found = [slot.astimezone(ZoneInfo(zone)) for slot in times(hour_and_minute(missing), zone, eve, 3)]
    that_day = [slot for slot in found if slot.date().isoformat() == spring]
    assert len(that_day) == 1
    assert f"{that_day[0]:%H:%M}" > missing  # the first minute there is
    others = [slot for slot in found if slot not in that_day]
    assert {f"{slot:%H:%M}" for slot in others} == {missing}


@pytest.mark.parametrize(("zone", "_spring", "autumn", "_missing", "doubled"), NIGHTS, ids=ZONES)
def test_a_time_that_an_autumn_night_has_twice_comes_once(
    zone: str, _spring: str, autumn: str, _missing: str, doubled: str
) -> None:
    eve = datetime.fromisoformat(f"{autumn}T12:00").replace(tzinfo=ZoneInfo(zone)) - timedelta(days=2)
    found = [slot.astimezone(ZoneInfo(zone)) for slot in times(hour_and_minute(doubled), zone, eve, 4)]
    days = [slot.date() for slot in found]
    assert days == [days[0] + timedelta(days=n) for n in range(4)]
    assert {f"{slot:%H:%M}" for slot in found} == {doubled}


@pytest.mark.parametrize(("zone", "spring", "autumn", "_missing", "_doubled"), NIGHTS, ids=ZONES)
def test_every_quarter_of_an_hour_goes_on_through_both_nights_by_real_time(
    zone: str, spring: str, autumn: str, _missing: str, _doubled: str
) -> None:
    for day in (spring, autumn):
        eve = datetime.fromisoformat(f"{day}T00:00").replace(tzinfo=ZoneInfo(zone)) - timedelta(hours=3)
        found = times("*/15 * * * *", zone, eve, 60)
        assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=15)}


@pytest.mark.parametrize(("zone", "spring", "autumn", "_missing", "_doubled"), NIGHTS, ids=ZONES)
def test_patterns_lose_no_time_and_add_none_around_both_nights(
    zone: str, spring: str, autumn: str, _missing: str, _doubled: str
) -> None:
    """Wherever the search begins: hours were gone where the clock is changed by half an hour, or at midnight."""
    specs: dict[str, Callable[[datetime], bool]] = {
        "0 */6 * * *": lambda wall: (wall.hour % 6, wall.minute) == (0, 0),
        "45 * * * *": lambda wall: wall.minute == 45,
        "*/30 9 * * *": lambda wall: (wall.hour, wall.minute % 30) == (9, 0),
        "*/15 0 * * 0": lambda wall: wall.hour == 0 and wall.minute % 15 == 0 and wall.isoweekday() == 7,
    }
    for day in (spring, autumn):
        begin = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=1)
        minutes = [begin + timedelta(minutes=minute) for minute in range(1, 3 * 24 * 60)]
        walls = [(at, at.astimezone(ZoneInfo(zone))) for at in minutes]
        for spec, comes in specs.items():
            for hours in (0, 7, 13, 19, 27):
                after = begin + timedelta(hours=hours, seconds=4)
                wanted = [at for at, wall in walls if at > after and comes(wall)]
                assert times_until(spec, zone, after, minutes[-1]) == wanted


@pytest.mark.parametrize("zone", ZONES)
def test_a_year_of_daily_times_has_each_day_once(zone: str) -> None:
    for clock in ("00:00", "00:30", "01:45", "02:00", "02:30", "03:00", "23:30"):
        found = times(hour_and_minute(clock), zone, at("2026-01-01 00:00"), 365)
        days = [slot.astimezone(ZoneInfo(zone)).date() for slot in found]
        assert days == [days[0] + timedelta(days=n) for n in range(365)]


@given(
    st.sampled_from(ZONES),
    st.sampled_from(["30 2 * * *", "0,30 2 * * *", "15 1 * * *", "*/20 * * * *", "45 1-3 * * *"]),
    MOMENTS,
)
def test_times_are_found_the_same_wherever_the_search_begins(zone: str, spec: str, begin: datetime) -> None:
    definition = a_definition(spec, timezone=zone)
    whole = list(islice(slots_after(definition, begin), 12))
    assert whole == sorted(set(whole))
    for number, slot in enumerate(whole[:6]):
        assert next(slots_after(definition, slot)) == whole[number + 1]
        assert next(slots_after(definition, slot - timedelta(seconds=1))) == slot
    assert due_slots(definition, whole[0], whole[8], 1).times == tuple(whole[:9])


HOURS = QuietHours(time(22), time(6), "Europe/Berlin")
LUNCH = QuietHours(time(12), time(13), "UTC")


@pytest.mark.parametrize(
    ("moment", "quiet"),
    [
        ("2026-03-02 20:59", False),
        ("2026-03-02 21:00", True),  # 22:00 in Berlin
        ("2026-03-02 23:30", True),  # past midnight there
        ("2026-03-03 04:59", True),
        ("2026-03-03 05:00", False),
        ("2026-07-02 20:00", True),  # summer time
        ("2026-07-03 04:00", False),
    ],
)
def test_quiet_hours_wrap_midnight(moment: str, quiet: bool) -> None:
    assert is_quiet(HOURS, at(moment)) is quiet


def test_quiet_hours_tell_when_they_end_and_begin() -> None:
    assert quiet_until(HOURS, at("2026-03-02 23:30")) == at("2026-03-03 05:00")
    assert quiet_until(HOURS, at("2026-03-02 12:30")) is None
    assert next_change(HOURS, at("2026-03-02 12:30")) == at("2026-03-02 21:00")
    assert quiet_until(LUNCH, at("2026-03-02 12:59")) == at("2026-03-02 13:00")
    assert next_change(LUNCH, at("2026-03-02 13:00")) == at("2026-03-03 12:00")


@given(
    st.sampled_from(ZONES),
    st.integers(0, 23),
    st.integers(0, 23),
    MOMENTS,
)
def test_quiet_hours_change_when_they_say(zone: str, start: int, end: int, now: datetime) -> None:
    if start == end:
        end = (start + 1) % 24
    hours = QuietHours(time(start), time(end), zone)
    change = next_change(hours, now)
    assert now < change <= now + timedelta(hours=26)
    assert is_quiet(hours, change) is not is_quiet(hours, now)


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        ("interval", "5", "Missing time unit"),
        ("interval", "1.5h", "write 90m"),
        ("interval", "0m", "Zero interval"),
        ("interval", "-5m", "Negative intervals"),
        ("interval", "5x", 'Invalid time unit "x". Valid units are: s, m, h, d'),
        ("cron", "0 8 * *", "five fields"),
        ("cron", "0 0 8 * * *", "five fields"),
        ("cron", "61 * * * *", "no cron expression"),
        ("cron", "0 0 30 2 *", "no cron expression"),
        ("cron", "@often", "no shorthand"),
        ("one_shot", "tomorrow", "expected a time such as"),
    ],
)
def test_a_wrong_spec_is_refused_with_what_was_expected(kind: str, spec: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace(".", r"\.")):
        check_spec(ScheduleType(kind), spec, "UTC")
