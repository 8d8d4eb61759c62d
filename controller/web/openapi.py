"""The OpenAPI document: what every JSON address takes and answers. Written beside the routes, held to them by tests."""

from controller import __version__
from controller.domain.charts import Span
from controller.web.bodies import ActionBody, HoldBody, NoteBody
from controller.web.openapi_schemas import STATUS_WORDS, Json, array_of, ref, schemas
from controller.web.query import CALENDAR_DAY, DAYS_BACK, ID_LIMIT, PER_PAGE_LIMIT, REACH_LIMIT

SUMMARY = """Reads are open to everyone (unless `web.private` is set) and show no more of private repositories than
their owner. Writes need `Authorization: Bearer $SWITCHBOARD_ADMIN_TOKEN`; `X-Requested-By` names whoever uses it.
401: no token. 403: a wrong one, or none is configured. Every refusal is a JSON object whose `message` is a sentence."""


def document() -> Json:
    """The whole document, OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Switchboard", "version": __version__, "description": SUMMARY},
        "paths": {**_reads(), **_writes()},
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"admin": {"type": "http", "scheme": "bearer"}},
        },
    }


def _reads() -> Json:
    lists = {
        "/usage.json": ("usage", "Demand and supply by owner and labels", "Usage", []),
        "/jobs.json": ("listJobs", "Jobs: pending, running, failed, completed", "Job", JOB_FILTERS),
        "/history.json": ("history", "The same as /jobs.json", "Job", JOB_FILTERS),
        "/workers.json": ("listWorkers", "Workers, newest first", "Worker", WORKER_FILTERS),
        "/boards.json": ("listBoards", "Boards by type", "Board", []),
        "/api/queue": ("queue", "What runs, waits and failed", "Job", JOB_FILTERS),
    }
    paths: Json = {
        path: {"get": _read(operation, summary, array_of(item), parameters + SLICE, 400)}
        for path, (operation, summary, item, parameters) in lists.items()
    }
    return {
        **paths,
        "/overview.json": {
            "get": _read("overview", "The installation at a glance", ref("Overview"), [SPAN], 400)
        },
        "/queue.json": {
            "get": _read("queuePage", "The queue and its holds", ref("Queue"), JOB_FILTERS + SLICE, 400)
        },
        "/jobs/{job_id}.json": {
            "get": _read("job", "All about one job", ref("JobStory"), [JOB_ID], 400, 404)
        },
        "/workers/{name}.json": {
            "get": _read("worker", "All about one worker", ref("WorkerStory"), [_name("A worker.")], 400, 404)
        },
        "/api/jobs/{job_id}/explain": {
            "get": _read("explain", "Why a job is not running", ref("Explanation"), [JOB_ID], 400, 404)
        },
        "/api/openapi.json": {"get": _read("openapi", "This document", {"type": "object"}, [])},
    }


def _writes() -> Json:
    job = {"job_id": JOB_ID}
    act = {
        "requestBody": _body(ActionBody, required=True),
        "responses": _written(ref("Job"), 404, 409),
    }
    paths: Json = {
        "/api/queue/{job_id}": {
            "parameters": list(job.values()),
            "patch": {**_write("act", "Retry or cancel a pending job"), **act},
            "post": {**_write("actByForm", "The same, for forms of pages"), **act},
            "delete": {
                **_write("cancel", "Cancel a pending job"),
                "requestBody": _body(NoteBody),
                "responses": _written(ref("Job"), 404, 409),
            },
        }
    }
    for plural, what, verb in (
        ("pools", "pool", "pause"),
        ("entities", "organization or person", "pause"),
        ("boards", "board", "drain"),
    ):
        for action, body in ((verb, HoldBody), ("resume", NoteBody)):
            operation = _write(f"{action}{plural.capitalize()}", f"{action.capitalize()} a {what}")
            operation |= {"requestBody": _body(body), "responses": _written(ref("Held"), 404)}
            parameters = [_name(f"The name of a {what}.")]
            paths[f"/api/{plural}/{{name}}/{action}"] = {"parameters": parameters, "post": operation}
    return paths


def _read(operation: str, summary: str, schema: Json, parameters: list[Json], *refusals: int) -> Json:
    return {
        "operationId": operation,
        "summary": summary,
        "parameters": parameters,
        "responses": {"200": _json("As asked for.", schema), **_refusals(401, 500, 503, *refusals)},
    }


def _write(operation: str, summary: str) -> Json:
    return {"operationId": operation, "summary": summary, "security": [{"admin": []}]}


def _written(schema: Json, *refusals: int) -> Json:
    common = (400, 401, 403, 408, 413, 500, 503)
    return {"200": _json("Done, and recorded as an event.", schema), **_refusals(*common, *refusals)}


REFUSALS = {
    400: "A value cannot be used.",
    401: "The admin token is missing.",
    403: "The admin token is wrong, or none is configured.",
    404: "There is no such thing.",
    408: "The body took too long.",
    409: "The job runs or has ended; nothing was changed.",
    413: "The body is too long.",
    500: "A mistake of the program.",
    503: "The database does not answer.",
}


def _refusals(*statuses: int) -> Json:
    return {str(status): _json(REFUSALS[status], ref("Refusal")) for status in sorted(statuses)}


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _body(model: type[ActionBody | HoldBody | NoteBody], *, required: bool = False) -> Json:
    return {"required": required, "content": {"application/json": {"schema": ref(model.__name__)}}}


def _name(description: str) -> Json:
    schema = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[A-Za-z0-9._-]+$"}
    return {"name": "name", "in": "path", "required": True, "description": description, "schema": schema}


def _query(name: str, schema: Json, description: str) -> Json:
    """A parameter of a list; a blank one was not given, as forms send it."""
    blank: Json = {"anyOf": [schema, {"const": ""}]}
    return {"name": name, "in": "query", "description": description, "schema": blank}


def _text(name: str, limit: int, description: str) -> Json:
    return _query(name, {"type": "string", "maxLength": limit}, description)


def _statuses(*words: str) -> Json:
    listed = "|".join(words)
    return _query(
        "status",
        {"type": "string", "pattern": f"^ *(({listed}) *)?(, *(({listed}) *)?)*$"},
        f"One or more of {', '.join(words)}, separated by commas.",
    )


JOB_ID: Json = {
    "name": "job_id",
    "in": "path",
    "required": True,
    "description": "GitHub's id of the job.",
    "schema": {"type": "integer", "minimum": 1, "maximum": ID_LIMIT},
}
DAY: Json = {"type": "string", "pattern": f"^({CALENDAR_DAY}|{DAYS_BACK})$"}
SPAN = _query("span", {"enum": [span.value for span in Span]}, "How far back the charts go.")
SLICE: list[Json] = [
    _query("page", {"type": "integer", "minimum": 1, "maximum": REACH_LIMIT}, "Which slice, from 1."),
    _query("per_page", {"type": "integer", "minimum": 1, "maximum": PER_PAGE_LIMIT}, "Rows of a slice."),
    _query("start", DAY, "First day, UTC, or -7d."),
    _query("end", DAY, "Last day, included."),
]
JOB_FILTERS: list[Json] = [
    _statuses(*STATUS_WORDS),
    _text("entity", 100, "A login in any case, or an id."),
    _text("repo", 200, "owner/name."),
    _text("label", 200, "One label."),
    _text("text", 200, "Words of the job's name or repository."),
    _query("run", {"type": "integer", "minimum": 1, "maximum": ID_LIMIT}, "The id of a run."),
    _text("pool", 200, "The name of a pool."),
    _query("failed_since", DAY, "Those that were lost since this day, UTC."),
]
WORKER_FILTERS: list[Json] = [
    _statuses(*STATUS_WORDS),
    _text("pool", 200, "The name of a pool."),
    _text("node", 400, "The name of a node."),
    _query("failed_since", DAY, "Those that failed since this day, UTC, without harmless endings."),
]
