"""The schemas of the OpenAPI document: bodies from their models, answers as `shown` makes them."""

from typing import Any

from controller.domain.charts import Span
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
SCOPE: Json = {"enum": ["pool", "entity", "board"]}
HIDDEN: Json = {"type": "boolean", "description": "What is private is left out, since nobody is signed in."}
OWNER: Json = {"entity_id": NUMBER, "entity_name": TEXT, "entity_type": {"enum": ["Organization", "User"]}}

EVENTS: Json = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "type": TEXT,
            "reason": TEXT,
            "message": TEXT,
            "count": NUMBER,
            "last_time": MAYBE,
        },
    },
}


def ref(name: str) -> Json:
    """A schema by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(name: str) -> Json:
    """A list of them."""
    return {"type": "array", "items": ref(name)}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _said(schema: Json, description: str) -> Json:
    return {**schema, "description": description}


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
    hold = _object(
        scope=SCOPE,
        target=TEXT,
        why=TEXT,
        until=MAYBE_WHEN,
        note=TEXT,
        who=_said(MAYBE, "Only if signed in."),
    )
    return {
        **found,
        "Refusal": _object(error=TEXT, message=TEXT),
        "Reason": _object(reason=TEXT, sentence=TEXT, next_step=TEXT),
        "Waiting": _object(
            reason=TEXT, sentence=TEXT, next_step=TEXT, since=MAYBE_WHEN, detail={"type": "object"}
        ),
        "Loss": _object(reason=TEXT, sentence=TEXT, next_step=TEXT, message=TEXT),
        "Hold": hold,
        "Held": _object(
            scope=SCOPE,
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
        "Job": _job(),
        "Worker": _worker(),
        "Board": _board(),
        "Usage": _usage(),
        "Event": _object(
            at=WHEN,
            source=TEXT,
            kind=TEXT,
            outcome=MAYBE,
            job_id=MAYBE_NUMBER,
            worker=MAYBE,
            who=_said(MAYBE, "Only if signed in."),
            detail={"type": "object"},
        ),
        "Overview": _overview(),
        "Queue": _object(jobs=array_of("Job"), holds=array_of("Hold")),
        "Turn": _object(
            position=MAYBE_NUMBER,
            note=_said(MAYBE, "Why there is neither a place nor an estimate."),
            estimate_seconds=MAYBE_NUMBER,
            boards=NUMBER,
            finished_jobs=NUMBER,
            board_seconds=MAYBE_NUMBER,
        ),
        "JobStory": _object(
            job_id=NUMBER,
            job=_maybe("Job"),
            queue=_maybe("Turn"),
            explanation=ref("Explanation"),
            workers=array_of("Worker"),
            events=array_of("Event"),
        ),
        "WorkerStory": _object(worker=ref("Worker"), job=_maybe("Job"), events=array_of("Event")),
    }


def _job() -> Json:
    return _object(
        job_id=NUMBER,
        **OWNER,
        private=FLAG,
        hidden=HIDDEN,
        repo=MAYBE,
        name=MAYBE,
        html_url=MAYBE,
        run_id=MAYBE_NUMBER,
        run_attempt=NUMBER,
        labels=TEXTS,
        pool=MAYBE,
        status=STATUS,
        conclusion=MAYBE,
        mark={"enum": ["cancelled", "gave_up", None]},
        runner_name=MAYBE,
        attempts=NUMBER,
        retry_after=MAYBE_WHEN,
        created_at=WHEN,
        seen_at=WHEN,
        started_at=MAYBE_WHEN,
        completed_at=MAYBE_WHEN,
        wait_seconds=NUMBER,
        run_seconds=MAYBE_NUMBER,
        unjudged=_said(
            FLAG, "It waits, and for a minute neither a runner was made for it nor a reason stored."
        ),
        reason=_maybe("Waiting"),
        failure=_maybe("Loss"),
    )


def _worker() -> Json:
    container = _object(name=TEXT, exit_code=MAYBE_NUMBER, reason=TEXT, message=TEXT, restart_count=NUMBER)
    info = _object(
        reason=MAYBE,
        message=TEXT,
        containers={"type": "array", "items": container},
        log_tail=TEXT,
        events=EVENTS,
    )
    info["additionalProperties"] = True  # what else was kept of the pod
    return _object(
        name=TEXT,
        **OWNER,
        private=FLAG,
        hidden=HIDDEN,
        repo=MAYBE,
        labels=TEXTS,
        pool=TEXT,
        image=TEXT,
        node=MAYBE,
        status=STATUS,
        made_for=MAYBE_NUMBER,
        job_id=MAYBE_NUMBER,
        runner_version=MAYBE,
        ending=_maybe("Reason"),
        created_at=WHEN,
        jit_at=MAYBE_WHEN,
        pod_at=MAYBE_WHEN,
        running_at=MAYBE_WHEN,
        online_at=MAYBE_WHEN,
        completed_at=MAYBE_WHEN,
        age_seconds=NUMBER,
        failure_reason=MAYBE,
        failure=_maybe("Reason"),
        failure_info={"anyOf": [info, {"type": "null"}]},
    )


def _board() -> Json:
    shown = _object(
        node=TEXT,
        board=MAYBE,
        pools=TEXTS,
        state=TEXT,
        slots=NUMBER,
        slots_free=NUMBER,
        worker=MAYBE,
        worker_status={"enum": [*STATUS_WORDS, None]},
        entity_name=MAYBE,
        job_id=MAYBE_NUMBER,
        job_name=MAYBE,
        repo=MAYBE,
        private=FLAG,
        hidden=HIDDEN,
        job_started_at=MAYBE_WHEN,
        job_seconds=MAYBE_NUMBER,
        heartbeat_at=WHEN,
        updated_at=WHEN,
        silent=_said(FLAG, "Nothing was heard of its node for minutes."),
        hold=_maybe("Hold"),
    )
    day = {"utilisation_24h": {"type": "number"}, "workers_ended_24h": NUMBER, "workers_failed_24h": NUMBER}
    return {**shown, "properties": {**shown["properties"], **day}}  # the overview leaves the day out


def _usage() -> Json:
    return _object(
        **OWNER,
        labels=TEXTS,
        private=FLAG,
        repo=MAYBE,
        pools=TEXTS,
        demand=NUMBER,
        supply=NUMBER,
        deficit=NUMBER,
        jobs_pending=NUMBER,
        jobs_running=NUMBER,
        workers_pending=NUMBER,
        workers_running=NUMBER,
        max_workers=MAYBE_NUMBER,
        oldest_at=MAYBE_WHEN,
        oldest_wait_seconds=MAYBE_NUMBER,
        boards=NUMBER,
        boards_free=_said(NUMBER, "Boards on which nothing runs or is about to."),
        slots=_said(NUMBER, "What these boards offer together; a board may offer several."),
        slots_free=NUMBER,
    )


def _overview() -> Json:
    alarm = _object(state=TEXT, sentence=TEXT, since=MAYBE_WHEN)
    values: Json = {"type": "array", "items": {"type": ["number", "null"]}}
    series = {"type": "array", "items": _object(name=TEXT, values=values)}
    chart = _object(name=TEXT, title=TEXT, start=WHEN, step_seconds=NUMBER, series=series)
    return _object(
        controller=_object(
            role={"enum": ["leader", "standby"]},
            healthy=FLAG,
            iterations=NUMBER,
            last_iteration_at=MAYBE_WHEN,
            failing=FLAG,
            alarm={"anyOf": [alarm, {"type": "null"}]},
            leader=MAYBE,
            leader_since=MAYBE_WHEN,
        ),
        counts=_object(
            jobs_pending=NUMBER,
            jobs_running=NUMBER,
            workers_pending=NUMBER,
            workers_running=NUMBER,
            workers_failed_today=_said(NUMBER, "Since midnight UTC, without harmless endings."),
            workers_failed_lately=_said(NUMBER, "In the last half hour, likewise."),
            jobs_lost_today=NUMBER,
            oldest_at=MAYBE_WHEN,
            oldest_wait_seconds=MAYBE_NUMBER,
        ),
        reasons={
            "type": "array",
            "items": _object(
                reason=MAYBE, unjudged=_said(FLAG, "Without a reason for over a minute."), jobs=NUMBER
            ),
        },
        boards=array_of("Board"),
        holds=array_of("Hold"),
        waiting=array_of("Job"),
        failures=array_of("Worker"),
        span={"enum": [span.value for span in Span]},
        charts={"type": "array", "items": chart},
    )
