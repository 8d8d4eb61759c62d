"""Schedules: the page, its twin, and the writes of the API.

    GET|POST /api/schedules   GET|PATCH|DELETE /api/schedules/{name}   POST …/run   PATCH|DELETE /api/occurrences/{id}

Forms of the page cannot PATCH or DELETE: they POST to the same addresses and name the action.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.decide.occurrences import known_type, plan_first
from controller.domain.controls import By
from controller.domain.schedules import (
    SKIP_SENTENCES,
    Definition,
    Occurrence,
    OccurrenceStatus,
    Planned,
    Schedule,
    ScheduleLine,
    ScheduleSkip,
)
from controller.errors import ConfigError
from controller.ports import Random
from controller.ports.schedules import Desk, ScheduleReader
from controller.settings import parse_schedule
from controller.web.admin import Admin, Done, Fields, Refused, checked
from controller.web.api import described
from controller.web.bodies import NoteBody
from controller.web.openapi import document
from controller.web.openapi_schedules import with_schedules
from controller.web.pages import NotThere
from controller.web.query import DAYS, ID_LIMIT, NOTHING, page_links, read_slice, read_window, refuse_unknown
from controller.web.reader import PageDeps
from controller.web.rendering import View
from controller.web.routes import Faces, writes
from controller.web.schedules_shown import as_entry, examples, show_occurrence, show_schedule
from controller.web.shown import Shown

log = structlog.get_logger()

OCCURRENCES_SHOWN = 50  # in the queue
FAILED_SHOWN = timedelta(days=7)
UNKNOWN = "There is no schedule of this name; /schedules lists those there are."
NO_OCCURRENCE = "There is no such occurrence."
FROM_THE_FILE = "It comes from the settings file: change it there. Only `enabled` can be changed here."
PRESETS = {
    "every 5 minutes": ("interval", "5m"),
    "hourly": ("cron", "0 * * * *"),
    "daily at midnight": ("cron", "0 0 * * *"),
    "weekly on Monday": ("cron", "0 0 * * 1"),
}


class ActBody(NoteBody):
    """What a form does with a schedule."""

    action: Literal["enable", "disable", "delete"]


class OccurrenceBody(NoteBody):
    """What is done with an occurrence."""

    action: Literal["retry", "cancel"]


def schedule_routes(
    deps: PageDeps, admin: Admin, reads: ScheduleReader, desk: Desk, rng: Random
) -> list[Route]:
    """The page for everyone, the writes for the admin."""
    faces, door = Faces(deps), writes(deps, admin)
    views = ScheduleViews(deps, reads)
    acts = ScheduleActs(deps, desk, rng)
    one, occurrence = "/api/schedules/{name}", "/api/occurrences/{number}"
    return [
        Route("/api/openapi.json", openapi),  # before the one without schedules
        Route("/schedules", faces.page(views.page)),
        Route("/schedules.json", faces.twin(views.page)),
        Route("/api/schedules", faces.twin(views.page), methods=["GET"]),
        Route("/api/schedules", door.admin_only(acts.create), methods=["POST"]),
        Route(one, faces.twin(views.one), methods=["GET"]),
        Route(one, door.admin_only(acts.change), methods=["PATCH"]),
        Route(one, door.admin_only(acts.act), methods=["POST"]),
        Route(one, door.admin_only(acts.delete), methods=["DELETE"]),
        Route(f"{one}/run", door.admin_only(acts.run), methods=["POST"]),
        Route(occurrence, door.admin_only(acts.act_on_occurrence), methods=["PATCH", "POST"]),
        Route(occurrence, door.admin_only(acts.cancel), methods=["DELETE"]),
    ]


async def openapi(request: Request) -> Response:
    """What can be asked here, schedules among it."""
    return described(request, with_schedules(document()))


class ScheduleViews:
    """What is read."""

    def __init__(self, deps: PageDeps, reads: ScheduleReader) -> None:
        self._deps = deps
        self._reads = reads
        self._examples = examples(deps.settings)

    async def page(self, request: Request) -> View:
        """All schedules, and what became of their last times."""
        now, full = self._deps.clock.now(), self._deps.visitors.reader(request) is not None
        refuse_unknown(request.query_params, DAYS)
        rows = [show_schedule(line, now, full=full) for line in await self._reads.lines()]
        part = read_slice(request.query_params)
        found = await self._reads.occurrences(read_window(request.query_params, now), part)
        newest = [show_occurrence(each, full=full) for each in found.rows]
        data = {"schedules": rows, "occurrences": newest}
        links = page_links(request.url, part, more=found.more)
        context = {**data, "presets": list(PRESETS), "examples": self._examples, "part": part}
        return View("schedules.html", "Schedules", data, context, links)

    async def one(self, request: Request) -> View:
        """One schedule."""
        now, full = self._deps.clock.now(), self._deps.visitors.reader(request) is not None
        refuse_unknown(request.query_params, NOTHING)
        name = request.path_params["name"]
        line = next((line for line in await self._reads.lines() if line.schedule.name == name), None)
        if line is None:
            raise NotThere(UNKNOWN)
        return View("schedules.html", name, show_schedule(line, now, full=full))

    async def waiting(self, request: Request) -> list[Shown]:
        """For the queue: the occurrences that wait, run or failed."""
        full = self._deps.visitors.reader(request) is not None
        found = await self._reads.waiting(self._deps.clock.now() - FAILED_SHOWN, OCCURRENCES_SHOWN)
        return [show_occurrence(each, full=full) for each in found]


class ScheduleActs:
    """What is written."""

    def __init__(self, deps: PageDeps, desk: Desk, rng: Random) -> None:
        self._file = deps.settings
        self._clock = deps.clock
        self._desk = desk
        self._rng = rng

    async def create(self, request: Request, who: str, fields: Fields) -> Done:
        """A new schedule; every mistake is told at once."""
        now = self._clock.now()
        by, entry = _by(who, fields)
        definition = self._checked(_from_form(entry))
        made = await self._desk.create(definition, self._plan(now)(definition), by, now)
        if made is None:
            raise Refused(409, f"There is a schedule {definition.name} already.")
        log.info("schedule.created", schedule=definition.name, who=who)
        return Done(self._show(made, now), 201)

    async def change(self, request: Request, who: str, fields: Fields) -> Done:
        """Change the fields that are given; the file's schedules can only be enabled and disabled."""
        name = _name(request)
        now = self._clock.now()
        by, entry = _by(who, fields)
        if set(entry) == {"enabled"} and isinstance(entry["enabled"], bool):
            return await self._switch(name, entry["enabled"], by)

        def changed(schedule: Schedule) -> tuple[Definition, Planned | None]:
            if schedule.in_file:  # one that was removed from it is changed like the API's own
                raise Refused(409, FROM_THE_FILE)
            before = schedule.definition
            known = as_entry(before)
            if entry.get("catchUp", known["catchUp"]) != known["catchUp"]:
                known.pop("catchUpCap", None)
            definition = self._checked({**known, **entry, "name": before.name})
            times = ("type", "spec", "timezone", "jitter", "enabled")
            moved = any(getattr(before, each) != getattr(definition, each) for each in times)
            return definition, self._plan(now)(definition) if moved else schedule.planned

        schedule = await self._desk.change(name, changed, by, now)
        if schedule is None:
            raise Refused(404, UNKNOWN, "Not found")
        return Done(self._show(schedule, now))

    async def act(self, request: Request, who: str, fields: Fields) -> Done:
        """What a form asks for."""
        body = checked(ActBody, fields)
        if body.action == "delete":
            return await self.delete(request, who, {"note": body.note})
        return await self._switch(_name(request), body.action == "enable", By(who, body.note))

    async def delete(self, request: Request, who: str, fields: Fields) -> Done:
        """Forget a schedule that is not in the settings file."""
        by = By(who, checked(NoteBody, fields).note)
        now = self._clock.now()
        gone = await self._desk.delete(_name(request), by, now)
        if gone is None:
            raise Refused(404, UNKNOWN, "Not found")
        if gone.in_file:
            raise Refused(409, "It comes from the settings file: remove it there, or disable it here.")
        return Done(self._show(gone, now))

    async def run(self, request: Request, who: str, fields: Fields) -> Done:
        """Fire now, whatever the time."""
        by = By(who, checked(NoteBody, fields).note)
        fired = await self._desk.run_now(_name(request), by, self._clock.now())
        if fired is None:
            raise Refused(404, UNKNOWN, "Not found")
        if isinstance(fired, ScheduleSkip):
            raise Refused(409, f"Not run ({fired.value}): {SKIP_SENTENCES[fired]}")
        return Done(show_occurrence(fired, full=True), 201)

    async def act_on_occurrence(self, request: Request, who: str, fields: Fields) -> Done:
        """Retry a failed occurrence or cancel a pending one."""
        body = checked(OccurrenceBody, fields)
        if body.action == "cancel":
            return await self.cancel(request, who, {"note": body.note})
        return await self._retry(request, By(who, body.note))

    async def cancel(self, request: Request, who: str, fields: Fields) -> Done:
        """Take back an occurrence that has not begun."""
        by = By(who, checked(NoteBody, fields).note)
        occurrence, done = _known(await self._desk.cancel(_number(request), by, self._clock.now()))
        if not done and occurrence.status is OccurrenceStatus.PENDING:
            raise Refused(
                409, "Its request was sent and may have started the workflow: cancel the run on GitHub."
            )
        if not done:
            raise Refused(409, f"It is {occurrence.status.value}; only a pending one can be cancelled.")
        return Done(show_occurrence(occurrence, full=True))

    async def _retry(self, request: Request, by: By) -> Done:
        """Put a failed occurrence back into the queue."""
        occurrence, done = _known(await self._desk.retry(_number(request), by, self._clock.now()))
        if not done and occurrence.status is OccurrenceStatus.FAILED:
            raise Refused(409, "Another start of the same workflow is unanswered; retry this one after it.")
        if not done:
            raise Refused(409, f"It is {occurrence.status.value}; only a failed one can be retried.")
        return Done(show_occurrence(occurrence, full=True))

    async def _switch(self, name: str, enabled: bool, by: By) -> Done:
        now = self._clock.now()
        schedule = await self._desk.switch(name, enabled, self._plan(now), by, now)
        if schedule is None:
            raise Refused(404, UNKNOWN, "Not found")
        return Done(self._show(schedule, now))

    def _plan(self, now: datetime) -> Callable[[Definition], Planned | None]:
        def plan(definition: Definition) -> Planned | None:
            if not known_type(definition):
                raise Refused(409, SKIP_SENTENCES[ScheduleSkip.UNSUPPORTED_TYPE])
            try:
                return plan_first(definition, now, self._rng.random())
            except ValueError as error:  # a newer program wrote it, or this machine lacks its time zone
                raise Refused(409, f"This schedule cannot be planned; change it first: {error}.") from None

        return plan

    def _checked(self, raw: dict[str, Any]) -> Definition:
        try:
            return parse_schedule(raw, self._file).as_domain()
        except ConfigError as error:
            raise Refused(400, "; ".join(error.mistakes) + ".") from None

    def _show(self, schedule: Schedule, now: datetime) -> Shown:
        return show_schedule(ScheduleLine(schedule, None), now, full=True)


def _number(request: Request) -> int:
    text = request.path_params["number"]
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= ID_LIMIT):
        raise Refused(404, NO_OCCURRENCE, "Not found")
    return int(text)


def _known(found: tuple[Occurrence, bool] | None) -> tuple[Occurrence, bool]:
    if found is None:
        raise Refused(404, NO_OCCURRENCE, "Not found")
    return found


def _name(request: Request) -> str:
    name = str(request.path_params["name"])
    if "\x00" in name:  # no text for the database, so no name of a schedule
        raise Refused(404, UNKNOWN, "Not found")
    return name


def _by(who: str, fields: Fields) -> tuple[By, dict[str, Any]]:
    """Who writes and why, and what is left of a body that also says what a schedule is."""
    entry = dict(fields)
    said = checked(NoteBody, {"note": entry.pop("note", "")})
    return By(who, said.note), entry


def _from_form(fields: Fields) -> dict[str, Any]:
    """The fields of a body, or of the page's form: a preset stands for type and spec, `with` is JSON text."""
    raw = {name: value for name, value in fields.items() if value != "" and name != "preset"}
    preset = fields.get("preset")
    if isinstance(preset, str) and preset in PRESETS:
        raw["type"], raw["spec"] = PRESETS[preset]
    if isinstance(raw.get("with"), str):
        try:
            raw["with"] = json.loads(raw["with"])
        except ValueError:
            raise Refused(400, 'with: expected JSON such as {"pool": "rv1"}.') from None
    return raw
