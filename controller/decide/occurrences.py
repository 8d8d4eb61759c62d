"""What a schedule does when its time has come: fire, skip or note what was missed, and when it comes next. Pure.

    due times ──▶ without the quiet ones ──▶ catch-up: which fire, which were missed ──▶ flood guard ──▶ next time

A cron time that is found more than a minute late was missed. Intervals and one-shots miss nothing: an interval has no
times but the one that is counted from its last firing, and found late it comes now; a one-shot comes late, as itself.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from controller.decide.quiet_hours import is_quiet
from controller.decide.slots import DueSlots, due_slots, read_moment, slots_after
from controller.domain.constants import MISSED_SHOWN, ON_TIME, ONE_SHOT_AGAIN
from controller.domain.durations import parse_duration
from controller.domain.firings import Firing, Pressure
from controller.domain.schedules import (
    Action,
    CatchUp,
    Definition,
    Planned,
    Schedule,
    ScheduleSkip,
    ScheduleType,
)


def plan_first(definition: Definition, now: datetime, chance: float) -> Planned | None:
    """When a new schedule comes for the first time: an interval at once, a moment in the past now."""
    match ScheduleType(definition.type):
        case ScheduleType.CRON:
            return _next(definition, now, chance)
        case ScheduleType.INTERVAL:
            return Planned(now, now)
        case ScheduleType.ONE_SHOT:
            due = max(now, read_moment(definition.spec, definition.timezone))
            return Planned(due, due)


def plan_again(schedule: Schedule, now: datetime, chance: float) -> Planned | None:
    """A nearer time than the planned one, if the clock was set back since it was planned; else None."""
    if schedule.planned is None or not known_type(schedule.definition):
        return None
    definition = schedule.definition
    match ScheduleType(definition.type):
        case ScheduleType.ONE_SHOT:
            return None
        case ScheduleType.INTERVAL:
            step = parse_duration(definition.spec)
            late = schedule.planned.due - now > step
            return Planned(now + step, now + step) if late else None
        case ScheduleType.CRON:
            nearest = _next(definition, now, chance)
            return nearest if nearest and schedule.planned.due > nearest.due else None


def plan_after_hand(schedule: Schedule, now: datetime) -> Planned | None:
    """The next time after a run by hand: an interval counts from its last firing, whoever fired it."""
    if schedule.planned is None or schedule.definition.type != ScheduleType.INTERVAL:
        return schedule.planned
    due = now + parse_duration(schedule.definition.spec)
    return Planned(due, due)


def known_type(definition: Definition) -> bool:
    """Whether this program knows what the schedule's spec means."""
    return definition.type in set(ScheduleType)


def judge_due(schedule: Schedule, pressure: Pressure, now: datetime, chance: float) -> Firing:
    """Decide on a schedule that was claimed; `chance` in [0, 1) draws the jitter."""
    definition, planned = schedule.definition, schedule.planned
    if not known_type(definition):
        return Firing(reason=ScheduleSkip.UNSUPPORTED_TYPE)
    if not schedule.enabled or planned is None:
        return Firing(reason=ScheduleSkip.DISABLED)
    if planned.run_at > now:
        return Firing(reason=ScheduleSkip.NOT_DUE, planned=planned)
    keep = definition.catch_up_cap if definition.catch_up is CatchUp.RUN_ALL_CAPPED else 1
    due = _due(definition, planned, now, keep)
    once = definition.type == ScheduleType.ONE_SHOT
    firing = _sort_out(definition, planned, due, pressure, now)
    if once and firing.reason is ScheduleSkip.AT_CAPACITY:  # it has no other time at which it could come
        return Firing(reason=firing.reason, planned=Planned(planned.due, now + ONE_SHOT_AGAIN))
    return replace(firing, planned=None if once else _next(definition, now, chance), disable=once)


def _due(definition: Definition, planned: Planned, now: datetime, keep: int) -> DueSlots:
    """The times that have come."""
    if definition.type == ScheduleType.INTERVAL:
        late = now - planned.run_at > ON_TIME
        return DueSlots((now if late else planned.due,), complete=True)
    return due_slots(definition, planned.due, now, keep)


def _sort_out(
    definition: Definition, planned: Planned, due: DueSlots, pressure: Pressure, now: datetime
) -> Firing:
    hours = definition.quiet_hours
    loud = [slot for slot in due.times if hours is None or not is_quiet(hours, slot)]
    if not loud or (hours is not None and is_quiet(hours, now)):
        quiet = ScheduleSkip.QUIET_HOURS
        return Firing(skipped=due.times[-1:], reason=quiet, stands_for=len(due.times), counted=due.complete)
    fire, missed = _catch_up(definition, planned, loud, now)
    refused = flood_guard(definition.action, pressure) if fire else None
    covered = len(missed) if definition.catch_up is CatchUp.RUN_ONCE else 0
    noted = () if covered else missed
    return Firing(
        fire=() if refused else fire,
        stands_for=covered + 1,
        skipped=fire if refused else (),
        reason=refused,
        missed=tuple(noted[:MISSED_SHOWN]),
        missed_besides=max(0, len(noted) - MISSED_SHOWN),
        counted=due.complete,
    )


def _catch_up(
    definition: Definition, planned: Planned, times: list[datetime], now: datetime
) -> tuple[tuple[datetime, ...], tuple[datetime, ...]]:
    """Which times fire now, oldest first, and which do not any more."""
    newest = times[-1]
    expected = planned.run_at if newest == planned.due else newest
    on_time = definition.type != ScheduleType.CRON or now - expected <= ON_TIME
    match definition.catch_up:
        case CatchUp.SKIP:
            fire = 1 if on_time else 0
        case CatchUp.RUN_ONCE:
            fire = 1
        case CatchUp.RUN_ALL_CAPPED:
            fire = max(1, definition.catch_up_cap)
    split = max(0, len(times) - fire)
    return tuple(times[split:]), tuple(times[:split])


def flood_guard(action: Action, pressure: Pressure) -> ScheduleSkip | None:
    """Why one more may not fire beside what is under way; what is done at once takes no place in the queue."""
    if pressure.predecessor:
        return ScheduleSkip.ALREADY_RUNNING
    return ScheduleSkip.AT_CAPACITY if pressure.full and action.outside else None


def _next(definition: Definition, after: datetime, chance: float) -> Planned | None:
    """The next time, up to `jitter` per cent of the way to the one behind it later; intervals count from `after`."""
    times = slots_after(definition, after)
    due = next(times, None)
    if due is None:
        return None
    return Planned(due, due + _jitter(definition, due, next(times, None), chance))


def _jitter(definition: Definition, due: datetime, behind: datetime | None, chance: float) -> timedelta:
    if not definition.jitter or behind is None:
        return timedelta()
    return (behind - due) * (definition.jitter / 100) * chance
