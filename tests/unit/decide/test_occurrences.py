"""What a schedule does when its time has come: fire, catch up, skip, and when it comes next."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decide.occurrences import plan_again, plan_first
from controller.domain.firings import Firing, Pressure
from controller.domain.schedules import Action, CatchUp, Owner, Planned, Schedule, ScheduleSkip
from tests.unit.decide.schedule_builders import CAPPED, NIGHT, NOON, a_definition, at, due

EIGHT = at("2026-03-02 08:00")


def test_a_time_that_has_come_fires_and_the_next_one_is_planned() -> None:
    firing = due(EIGHT, EIGHT)
    assert (firing.fire, firing.planned) == ((EIGHT,), Planned(*[at("2026-03-03 08:00")] * 2))
    assert (firing.missed, firing.reason, firing.disable) == ((), None, False)


@pytest.mark.parametrize(("late", "fires"), [(60, True), (61, False)])
def test_a_cron_time_may_be_a_minute_late_before_it_counts_as_missed(late: int, fires: bool) -> None:
    firing = due(EIGHT, EIGHT + timedelta(seconds=late))
    assert (firing.fire, firing.missed) == (((EIGHT,), ()) if fires else ((), (EIGHT,)))


@pytest.mark.parametrize(
    "outage",
    [timedelta(minutes=7), timedelta(hours=30), timedelta(days=9, hours=5), timedelta(days=92, hours=5)],
)
@pytest.mark.parametrize("policy", list(CatchUp))
def test_catch_up_after_outages_from_minutes_to_months(policy: CatchUp, outage: timedelta) -> None:
    now = EIGHT + outage
    times = [EIGHT + timedelta(days=n) for n in range(outage.days + 1) if EIGHT + timedelta(days=n) <= now]
    firing = due(EIGHT, now, catch_up=policy, catch_up_cap=3)
    match policy:
        case CatchUp.SKIP:
            assert (firing.fire, firing.missed) == ((), tuple(times))
        case CatchUp.RUN_ONCE:
            assert (firing.fire, firing.stands_for, firing.missed) == ((times[-1],), len(times), ())
        case CatchUp.RUN_ALL_CAPPED:
            assert (firing.fire, firing.missed) == (tuple(times[-3:]), tuple(times[:-3]))
    assert firing.planned is not None
    assert now < firing.planned.due <= now + timedelta(days=1)


def test_missed_times_get_an_event_each_up_to_a_hundred_and_then_a_count() -> None:
    firing = due(EIGHT, EIGHT + timedelta(minutes=1000), spec="*/5 * * * *", jitter=0)
    assert (len(firing.missed), firing.missed_besides) == (100, 100)
    assert firing.counted
    assert firing.missed[0] == EIGHT


def test_months_of_missed_minutes_are_estimated_and_the_newest_is_still_exact() -> None:
    now = EIGHT + timedelta(days=92, seconds=20)
    firing = due(EIGHT, now, spec="* * * * *", catch_up=CatchUp.RUN_ONCE)
    assert (firing.fire, firing.counted) == ((now - timedelta(seconds=20),), False)
    capped = due(EIGHT, now, spec="* * * * *", catch_up=CAPPED, catch_up_cap=4)
    assert capped.fire == tuple(now - timedelta(seconds=20, minutes=n) for n in (3, 2, 1, 0))


@pytest.mark.parametrize("late", [60, 61, 64 * 60, 92 * 86_400])
@pytest.mark.parametrize("policy", list(CatchUp))
def test_an_interval_is_never_missed_a_time_in_the_past_means_now(policy: CatchUp, late: int) -> None:
    now = EIGHT + timedelta(seconds=late)
    firing = due(EIGHT, now, kind="interval", spec="10m", catch_up=policy, catch_up_cap=3)
    assert firing.fire == ((EIGHT if late <= 60 else now),)
    assert (firing.missed, firing.missed_besides, firing.stands_for) == ((), 0, 1)
    assert firing.planned == Planned(*[now + timedelta(minutes=10)] * 2)  # counted from the firing


def test_an_interval_whose_time_came_in_an_outage_looks_at_the_quiet_hours_of_now() -> None:
    night, morning = at("2026-03-02 23:00"), at("2026-03-03 06:30")
    assert due(night, morning, kind="interval", spec="1h", quiet_hours=NIGHT).fire == (morning,)
    evening = at("2026-03-02 21:00")
    assert due(evening, night, kind="interval", spec="1h", quiet_hours=NIGHT).skipped == (night,)


def test_a_one_shot_fires_late_rather_than_never_and_disables_itself() -> None:
    firing = due(EIGHT, EIGHT + timedelta(days=3), kind="one_shot", spec="2026-03-02T08:00:00+00:00")
    assert (firing.fire, firing.planned, firing.disable) == ((EIGHT,), None, True)


@pytest.mark.parametrize(
    ("kind", "spec", "first"),
    [
        ("cron", "@hourly", at("2026-03-02 13:00")),
        ("cron", "@daily", at("2026-03-03 00:00")),
        ("cron", "@weekly", at("2026-03-08 00:00")),
        ("cron", "@monthly", at("2026-04-01 00:00")),
        ("cron", "@yearly", at("2027-01-01 00:00")),
        ("cron", "0 9 * * 1-5", at("2026-03-03 09:00")),
        ("cron", "*/10 * * * *", at("2026-03-02 12:10")),
        ("cron", "0 1-5/2 * * *", at("2026-03-03 01:00")),
        ("cron", "15 1,13,23 * * *", at("2026-03-02 13:15")),
        ("interval", "5m", NOON),
        ("one_shot", "2026-12-01T08:00:00+01:00", at("2026-12-01 07:00")),
        ("one_shot", "2020-12-01T08:00:00+01:00", NOON),
    ],
)
def test_the_first_time(kind: str, spec: str, first: datetime) -> None:
    assert plan_first(a_definition(spec, kind), NOON, 0.0) == Planned(first, first)


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_jitter_delays_by_up_to_ten_per_cent_of_the_gap_and_does_not_change_the_key(chance: float) -> None:
    planned = plan_first(a_definition("0 * * * *", jitter=10), NOON, chance)
    assert planned is not None
    assert planned.due == at("2026-03-02 13:00")
    assert planned.run_at == planned.due + timedelta(minutes=6) * chance


def test_a_time_that_its_jitter_delays_is_not_missed() -> None:
    planned = Planned(EIGHT, EIGHT + timedelta(hours=2))
    assert due(planned, EIGHT + timedelta(hours=1), jitter=10).reason is ScheduleSkip.NOT_DUE
    assert due(planned, EIGHT + timedelta(hours=2, seconds=5), jitter=10).fire == (EIGHT,)


@pytest.mark.parametrize(
    ("firing", "reason"),
    [
        (due(EIGHT, EIGHT, enabled=False), ScheduleSkip.DISABLED),
        (due(EIGHT, EIGHT, Pressure(predecessor=True)), ScheduleSkip.ALREADY_RUNNING),
        (due(EIGHT, EIGHT, Pressure(full=True), action=Action.DISPATCH), ScheduleSkip.AT_CAPACITY),
        (due(EIGHT, EIGHT, Pressure(full=True), action=Action.DRAIN), None),  # it takes no place
        (due(EIGHT, EIGHT - timedelta(seconds=1)), ScheduleSkip.NOT_DUE),
        (due(EIGHT, EIGHT, quiet_hours=NIGHT), None),
        (
            due(EIGHT, EIGHT + timedelta(hours=15), catch_up=CatchUp.RUN_ONCE, quiet_hours=NIGHT),
            ScheduleSkip.QUIET_HOURS,
        ),
        (due(EIGHT, EIGHT, kind="webhook"), ScheduleSkip.UNSUPPORTED_TYPE),
    ],
)
def test_each_reason_to_skip(firing: Firing, reason: ScheduleSkip | None) -> None:
    assert firing.reason is reason
    assert bool(firing.fire) is (reason is None)


def test_a_skipped_time_is_over_and_the_next_one_is_planned() -> None:
    firing = due(EIGHT, EIGHT, Pressure(predecessor=True))
    assert (firing.skipped, firing.planned) == ((EIGHT,), Planned(*[at("2026-03-03 08:00")] * 2))


def test_times_within_quiet_hours_are_not_made_good_afterwards() -> None:
    first = at("2026-03-02 20:00")
    firing = due(
        first, at("2026-03-03 06:30"), spec="0 * * * *", quiet_hours=NIGHT, catch_up=CatchUp.RUN_ONCE
    )
    assert firing.fire == (at("2026-03-03 06:00"),)
    assert firing.stands_for == 3  # 20:00, 21:00 and 06:00


def test_a_schedule_whose_every_time_was_quiet_is_skipped_once() -> None:
    first = at("2026-03-02 23:00")
    firing = due(
        first, at("2026-03-03 06:30"), spec="0 23 * * *", quiet_hours=NIGHT, catch_up=CatchUp.RUN_ONCE
    )
    assert (firing.fire, firing.skipped, firing.reason) == ((), (first,), ScheduleSkip.QUIET_HOURS)


def test_a_clock_that_was_ahead_does_not_silence_a_schedule() -> None:
    far = at("2027-03-02 08:00")
    ahead = Schedule(a_definition(), Owner.API, True, Planned(far, far))
    assert plan_again(ahead, NOON, 0.0) == Planned(*[at("2026-03-03 08:00")] * 2)
    near = at("2026-03-03 08:00")
    assert plan_again(Schedule(a_definition(), Owner.API, True, Planned(near, near)), NOON, 0.0) is None


@given(
    st.sampled_from(
        ["* * * * *", "*/7 * * * *", "0 3 * * *", "30 2 * * *", "15 1,13 1-7 * 1-5", "0 0 29 2 *"]
    ),
    st.sampled_from(list(CatchUp)),
    st.integers(0, 3 * 86400),
    st.floats(0, 0.999),
)
def test_every_due_time_fires_is_missed_or_is_stood_for_and_none_twice(
    spec: str, policy: CatchUp, late: int, chance: float
) -> None:
    definition = a_definition(spec, catch_up=policy, catch_up_cap=5, timezone="Europe/Berlin")
    planned = plan_first(definition, NOON, 0.0)
    assert planned is not None
    now = planned.due + timedelta(seconds=late)
    firing = due(
        planned, now, chance=chance, spec=spec, catch_up=policy, catch_up_cap=5, timezone="Europe/Berlin"
    )
    touched = [*firing.missed, *firing.fire]
    assert touched == sorted(set(touched))
    assert all(planned.due <= slot <= now for slot in touched)
    assert firing.planned is not None
    assert firing.planned.due > now
    if firing.fire:
        assert firing.fire[-1] == max(touched)
