"""Schedules and occurrences as the pages and the JSON show them.

Where a workflow is started may be a private repository: strangers see its owner only, and no addresses or errors.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controller.decide.occurrences import known_type
from controller.decide.slots import check_timezone, next_times
from controller.domain.durations import UNITS
from controller.domain.schedules import (
    SKIP_SENTENCES,
    Action,
    Definition,
    Occurrence,
    Schedule,
    ScheduleLine,
    ScheduleSkip,
)
from controller.settings import File
from controller.web.shown import Shown

SHOWN_TIMES = 5
HIDDEN = "Sign in to read this."
ORDER = ("entity", "repo", "workflow", "ref", "inputs", "pool", "board", "labels", "runners", "for")


def show_schedule(line: ScheduleLine, now: datetime, *, full: bool) -> Shown:
    """One schedule with its last and next times."""
    schedule, definition = line.schedule, line.schedule.definition
    return {
        **as_entry(definition, full=full),
        "enabled": schedule.enabled,
        "owner": schedule.owner.value,
        "in_file": schedule.in_file,
        "status": line.status,
        "last_run_at": schedule.last_run_at,
        "next_run_at": schedule.planned.run_at if schedule.enabled and schedule.planned else None,
        "last_error": _told(schedule.last_error, definition.action, full),
        "next_times": _times(schedule, now) if schedule.enabled else [],
        "last_occurrence": show_occurrence(line.last, full=full) if line.last else None,
    }


def show_occurrence(occurrence: Occurrence, *, full: bool) -> Shown:
    """One occurrence with what became of it."""
    visible = full or occurrence.action is not Action.DISPATCH
    reason = occurrence.reason
    known = reason in set(ScheduleSkip)
    return {
        "id": occurrence.id,
        "schedule": occurrence.schedule,
        "due_at": occurrence.due_at,
        "action": occurrence.action.value,
        "status": occurrence.status.value,
        "reason": reason,
        "sentence": SKIP_SENTENCES[ScheduleSkip(reason)] if reason and known else None,
        "manual": occurrence.manual,
        "slots": occurrence.slots,
        "attempts": occurrence.attempts,
        "max_attempts": occurrence.max_attempts,
        "retry_after": occurrence.retry_after,
        "warm_until": occurrence.warm_until,
        "result": occurrence.result if visible else None,
        "run_id": occurrence.run_id if visible else None,
        "jobs": f"/jobs?run={occurrence.run_id}" if visible and occurrence.run_id else None,
        "error": _told(occurrence.error, occurrence.action, full),
        "started_at": occurrence.started_at,
        "completed_at": occurrence.completed_at,
    }


def as_entry(definition: Definition, *, full: bool = True) -> Shown:
    """A definition in the words of the settings file."""
    hours = definition.quiet_hours
    entry: Shown = {
        "name": definition.name,
        "type": definition.type,
        "spec": definition.spec,
        "timezone": definition.timezone,
        "action": definition.action.value,
        "with": _arguments(definition, full),
        "catchUp": definition.catch_up.value,
        "jitter": definition.jitter,
        "priority": definition.priority,
        "enabled": definition.enabled,
    }
    if definition.catch_up == "run_all_capped":
        entry["catchUpCap"] = definition.catch_up_cap
    if hours is not None:
        quiet = {"from": hours.start.isoformat("minutes"), "to": hours.end.isoformat("minutes")}
        entry["quietHours"] = {**quiet, "timezone": hours.timezone}
    return entry


def _arguments(definition: Definition, full: bool) -> Mapping[str, Any]:
    stored = definition.arguments  # in an order of the database's
    given = {name: stored[name] for name in ORDER if name in stored} | dict(stored)
    if not full and definition.action is Action.DISPATCH:
        return {"owner": str(given["repo"]).partition("/")[0]}
    if not full:
        given.pop("repo", None)
    if "for" in given:
        given["for"] = exact_duration(int(given["for"]))
    return given


def exact_duration(seconds: int) -> str:
    """In the largest unit that loses nothing."""
    unit = max((unit for unit in UNITS if seconds % UNITS[unit] == 0), key=lambda unit: UNITS[unit])
    return f"{seconds // UNITS[unit]}{unit}"


def _told(text: str | None, action: Action, full: bool) -> str | None:
    return HIDDEN if text is not None and not full and action in (Action.DISPATCH, Action.WARM) else text


def _times(schedule: Schedule, now: datetime) -> list[Shown]:
    """The next times from the planned one on, also as the schedule's zone shows them; jitter not counted."""
    definition, planned = schedule.definition, schedule.planned
    if not known_type(definition):
        return []
    try:
        zone = check_timezone(definition.timezone)
        first = [planned.due] if planned is not None else []
        times = [*first, *next_times(definition, first[0] if first else now, SHOWN_TIMES - len(first))]
    except ValueError:
        return []
    return [{"at": at, "local": at.astimezone(zone).strftime("%a %Y-%m-%d %H:%M %Z")} for at in times]


def examples(file: File) -> list[tuple[str, str, str]]:
    """For each action, what may stand in `with` here, and what it does."""
    pool = file.pools[0]
    warm = {"entity": "example-org", "labels": list(pool.label_sets[0]), "runners": 2, "for": "2h"}
    build = {"repo": "example-org/llvm", "workflow": "build.yml", "ref": "main", "inputs": {"suite": "full"}}
    given: list[tuple[Action, dict[str, Any], str]] = [
        (Action.WARM, warm, "keeps spare runners; those of a personal account need its `repo` too"),
        (Action.DISPATCH, build, "starts a workflow that has `on: workflow_dispatch`"),
        (Action.PAUSE, {"pool": pool.name, "for": "2h"}, "no new runners; for an owner `entity`, not `pool`"),
        (Action.RESUME, {"pool": pool.name}, "ends what a schedule has paused"),
        (Action.DRAIN, {"board": "node-7", "for": "2h"}, "no new runners on a board"),
        (Action.PRUNE, {}, "forgets at once what is older than the settings keep"),
    ]
    return [(action.value, json.dumps(arguments), does) for action, arguments, does in given]
