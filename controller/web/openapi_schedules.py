"""The part of the OpenAPI document that describes schedules; `with_schedules` adds it to the rest."""

from controller.domain.schedules import Action, CatchUp, OccurrenceStatus, ScheduleType
from controller.web.openapi import REFUSALS
from controller.web.openapi_schemas import (
    FLAG,
    MAYBE,
    MAYBE_NUMBER,
    MAYBE_WHEN,
    NUMBER,
    TEXT,
    WHEN,
    Json,
    array_of,
    ref,
)
from controller.web.query import ID_LIMIT

NAME: Json = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The name of a schedule.",
    "schema": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9_.]{0,61}[a-z0-9])?$"},
}
NUMBERED: Json = {
    "name": "number",
    "in": "path",
    "required": True,
    "description": "The id of an occurrence.",
    "schema": {"type": "integer", "minimum": 1, "maximum": ID_LIMIT},
}
COMMON = (400, 401, 403, 408, 413, 500, 503)


def with_schedules(document: Json) -> Json:
    """The document with the addresses of schedules and occurrences."""
    known = document["components"]
    queue = known["schemas"]["Queue"]
    queue = {**queue, "properties": {**queue["properties"], "occurrences": array_of("Occurrence")}}
    components = {**known, "schemas": {**known["schemas"], "Queue": queue, **_schemas()}}
    return {**document, "paths": {**document["paths"], **_paths()}, "components": components}


def _paths() -> Json:
    shown = {
        "get": _read("schedules", "Schedules, and what became of their last times", ref("Schedules"), 400)
    }
    page = {"get": {**shown["get"], "operationId": "schedulesPage"}}
    made = _write("createSchedule", "A new schedule", "ScheduleBody", ref("Schedule"), 409, done=201)
    act = _write(
        "actOnSchedule", "Enable, disable or delete, for forms of pages", "ScheduleAct", ref("Schedule")
    )
    act_on_one = _write(
        "actOnOccurrence",
        "Retry a failed occurrence, or cancel a pending one",
        "OccurrenceAct",
        ref("Occurrence"),
        404,
        409,
    )
    return {
        "/schedules.json": page,
        "/api/schedules": {**shown, "post": made},
        "/api/schedules/{name}": {
            "parameters": [NAME],
            "get": _read("schedule", "One schedule", ref("Schedule"), 404),
            "patch": _write(
                "changeSchedule", "Change what is given", "ScheduleChange", ref("Schedule"), 404, 409
            ),
            "post": {**act, "responses": {**act["responses"], **_refusals(404, 409)}},
            "delete": _write("deleteSchedule", "Forget it", "NoteBody", ref("Schedule"), 404, 409),
        },
        "/api/schedules/{name}/run": {
            "parameters": [NAME],
            "post": _write("runSchedule", "Run it now", "NoteBody", ref("Occurrence"), 404, 409, done=201),
        },
        "/api/occurrences/{number}": {
            "parameters": [NUMBERED],
            "patch": act_on_one,
            "post": {**act_on_one, "operationId": "actOnOccurrenceByForm"},
            "delete": _write(
                "cancelOccurrence", "Cancel a pending one", "NoteBody", ref("Occurrence"), 404, 409
            ),
        },
    }


def _read(operation: str, summary: str, schema: Json, *refusals: int) -> Json:
    answers = {"200": _json("As asked for.", schema), **_refusals(401, 500, 503, *refusals)}
    return {"operationId": operation, "summary": summary, "responses": answers}


def _write(operation: str, summary: str, body: str, schema: Json, *refusals: int, done: int = 200) -> Json:
    answers = {str(done): _json("Done, and recorded as an event.", schema), **_refusals(*COMMON, *refusals)}
    content = {"required": body != "NoteBody", "content": {"application/json": {"schema": ref(body)}}}
    security: list[Json] = [{"admin": []}]
    return {
        "operationId": operation,
        "summary": summary,
        "security": security,
        "requestBody": content,
        "responses": answers,
    }


def _refusals(*statuses: int) -> Json:
    words = {**REFUSALS, 409: "It cannot be done as things are; nothing was changed."}
    return {str(status): _json(words[status], ref("Refusal")) for status in sorted(statuses)}


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _schemas() -> Json:
    body: Json = {
        "name": {"type": "string", "maxLength": 63},
        "type": {"enum": [kind.value for kind in ScheduleType]},
        "spec": {"type": "string", "examples": ["0 8 * * 1-5", "5m", "2026-12-01T08:00:00+01:00"]},
        "timezone": {"type": "string", "examples": ["Europe/Berlin"]},
        "action": {"enum": [action.value for action in Action]},
        "with": {"type": "object", "examples": [{"pool": "scw-em-rv1", "for": "2h"}]},
        "catchUp": {"enum": [policy.value for policy in CatchUp]},
        "catchUpCap": {"type": "integer", "minimum": 1, "maximum": 100},
        "quietHours": {"type": "object", "examples": [{"from": "22:00", "to": "06:00"}]},
        "jitter": {"type": "integer", "minimum": 0, "maximum": 10},
        "priority": {"type": "integer", "minimum": 1, "maximum": 10},
        "enabled": FLAG,
    }
    note: Json = {"type": "string", "maxLength": 500}
    occurrence = _object(
        id=NUMBER,
        schedule=TEXT,
        due_at=WHEN,
        action=TEXT,
        status={"enum": [status.value for status in OccurrenceStatus]},
        reason=MAYBE,
        sentence=MAYBE,
        manual=FLAG,
        slots=NUMBER,
        attempts=NUMBER,
        max_attempts=NUMBER,
        retry_after=MAYBE_WHEN,
        warm_until=MAYBE_WHEN,
        result=MAYBE,
        run_id=MAYBE_NUMBER,
        jobs=MAYBE,
        error=MAYBE,
        started_at=MAYBE_WHEN,
        completed_at=MAYBE_WHEN,
    )
    schedule = _object(
        **{name: part for name, part in body.items() if name not in ("catchUpCap", "quietHours")},
        owner={"enum": ["file", "api"]},
        in_file=FLAG,
        status={"enum": ["idle", "running", "disabled"]},
        last_run_at=MAYBE_WHEN,
        next_run_at=MAYBE_WHEN,
        last_error=MAYBE,
        next_times={"type": "array", "items": _object(at=WHEN, local=TEXT)},
        last_occurrence={"anyOf": [ref("Occurrence"), {"type": "null"}]},
    )
    schedule["properties"] |= {name: body[name] for name in ("catchUpCap", "quietHours")}  # if they are set
    required = ["name", "type", "spec", "action"]
    written = {**body, "note": note}
    acts = {"action": {"enum": ["enable", "disable", "delete"]}, "note": note}
    return {
        "ScheduleBody": {
            "type": "object",
            "properties": written,
            "required": required,
            "additionalProperties": False,
        },
        "ScheduleChange": {"type": "object", "properties": written, "additionalProperties": False},
        "ScheduleAct": {
            "type": "object",
            "properties": acts,
            "required": ["action"],
            "additionalProperties": False,
        },
        "OccurrenceAct": {
            "type": "object",
            "properties": {"action": {"enum": ["retry", "cancel"]}, "note": note},
            "required": ["action"],
            "additionalProperties": False,
        },
        "Occurrence": occurrence,
        "Schedule": schedule,
        "Schedules": _object(schedules=array_of("Schedule"), occurrences=array_of("Occurrence")),
    }
