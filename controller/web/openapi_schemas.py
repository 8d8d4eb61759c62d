"""The schemas of the OpenAPI document: bodies from their models, answers as `shown` makes them."""

from typing import Any

from controller.web.bodies import ActionBody, HoldBody, NoteBody

Json = dict[str, Any]

STATUS_WORDS = ("pending", "running", "completed", "failed")
TEXT: Json = {"type": "string"}
MAYBE: Json = {"type": ["string", "null"]}
WHEN: Json = {"type": "string", "format": "date-time"}
MAYBE_WHEN: Json = {"type": ["string", "null"], "format": "date-time"}
NUMBER: Json = {"type": "integer"}
MAYBE_NUMBER: Json = {"type": ["integer", "null"]}
FLAG: Json = {"type": "boolean"}
TEXTS: Json = {"type": "array", "items": TEXT}
STATUS: Json = {"enum": list(STATUS_WORDS)}
OWNER: Json = {"entity_id": NUMBER, "entity_name": TEXT, "entity_type": {"enum": ["Organization", "User"]}}


def ref(name: str) -> Json:
    """A schema by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(name: str) -> Json:
    """A list of them."""
    return {"type": "array", "items": ref(name)}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _maybe(name: str) -> Json:
    return {"anyOf": [ref(name), {"type": "null"}]}


def schemas() -> Json:
    """Every schema that the document names."""
    bodies = (ActionBody, HoldBody, NoteBody)
    found: Json = {}
    for model in bodies:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}", by_alias=True)
        found |= schema.pop("$defs", {})
        found[model.__name__] = schema
    reason = _object(reason=TEXT, sentence=TEXT, next_step=TEXT)
    hold = _object(
        scope={"enum": ["pool", "entity", "board"]}, target=TEXT, why=TEXT, until=MAYBE_WHEN, note=TEXT
    )
    story = {"type": "array", "items": ref("Event")}
    return {
        **found,
        "Refusal": _object(error=TEXT, message=TEXT),
        "Reason": reason,
        "Hold": hold,
        "Held": _object(
            scope={"enum": ["pool", "entity", "board"]},
            target=TEXT,
            held=FLAG,
            holds={
                "type": "array",
                "items": _object(why=TEXT, until=MAYBE_WHEN, note=TEXT, who=TEXT, since=WHEN),
            },
        ),
        "Explanation": _object(
            job_id=NUMBER,
            state={"enum": [*STATUS_WORDS, "ignored"]},
            reason=MAYBE,
            sentence=TEXT,
            figures=TEXT,
            next_step=TEXT,
            since=MAYBE_WHEN,
            detail={"type": "object"},
            message=TEXT,
        ),
        "Job": _object(
            job_id=NUMBER,
            **OWNER,
            private=FLAG,
            repo=MAYBE,
            name=MAYBE,
            html_url=MAYBE,
            run_id=MAYBE_NUMBER,
            labels=TEXTS,
            pool=MAYBE,
            status=STATUS,
            conclusion=MAYBE,
            mark={"enum": ["cancelled", "gave_up", None]},
            runner_name=MAYBE,
            attempts=NUMBER,
            retry_after=MAYBE_WHEN,
            created_at=WHEN,
            started_at=MAYBE_WHEN,
            completed_at=MAYBE_WHEN,
            wait_seconds=NUMBER,
            run_seconds=MAYBE_NUMBER,
            reason=_maybe("Reason"),
            failure=_maybe("Reason"),
        ),
        "Worker": _object(
            name=TEXT,
            **OWNER,
            labels=TEXTS,
            pool=TEXT,
            image=TEXT,
            node=MAYBE,
            status=STATUS,
            created_at=WHEN,
            completed_at=MAYBE_WHEN,
            failure=_maybe("Reason"),
        ),
        "Board": _object(
            node=TEXT, board=MAYBE, pools=TEXTS, state=TEXT, slots=NUMBER, worker=MAYBE, hold=_maybe("Hold")
        ),
        "Usage": _object(
            **OWNER, labels=TEXTS, demand=NUMBER, supply=NUMBER, deficit=NUMBER, oldest_at=MAYBE_WHEN
        ),
        "Event": _object(at=WHEN, source=TEXT, kind=TEXT, outcome=MAYBE, detail={"type": "object"}),
        "Overview": _object(
            controller={"type": "object"},
            counts={"type": "object"},
            boards=array_of("Board"),
            holds=array_of("Hold"),
            waiting=array_of("Job"),
            failures=array_of("Worker"),
        ),
        "Queue": _object(jobs=array_of("Job"), holds=array_of("Hold")),
        "JobStory": _object(
            job_id=NUMBER,
            job=_maybe("Job"),
            explanation=ref("Explanation"),
            workers=array_of("Worker"),
            events=story,
        ),
        "WorkerStory": _object(worker=ref("Worker"), job=_maybe("Job"), events=story),
    }
