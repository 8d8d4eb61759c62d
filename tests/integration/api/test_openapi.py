"""The OpenAPI document is true: it names every JSON address, and no answer is found that it does not describe."""

import asyncio
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from starlette.applications import Starlette
from starlette.routing import Route

from controller.web.openapi import document
from controller.web.openapi_schedules import with_schedules
from tests.clocks import ManualClock
from tests.integration.api.conftest import BEARER, an_app
from tests.integration.web_pages.seeding import Seed, ago
from tests.postgres import Databases, opened
from tests.serving import serving

EXAMPLES = 15
KNOWN = [
    {"job_id": job_id, "name": name, "number": job_id}
    for job_id, name in enumerate(
        ("vector", "node-1", "example-org", "rise-riscv-runner-bbbbbbbbb", "scw-em-rv1"), start=1
    )
]


@dataclass(frozen=True, slots=True)
class Server:
    """A served application with rows of every kind."""

    url: str


async def fill(seed: Seed) -> None:
    """Rows of every kind and state, private ones and odd ones among them."""
    for job_id, status in enumerate(("pending", "running", "failed", "completed"), start=1):
        await seed.job(job_id, status, private=job_id == 2, failure_info={"reason": "not_found"})
    await seed.job(5, mark="gave_up", attempts=3, skip_reason="gave_up", name="<b>ü</b>")
    await seed.worker("rise-riscv-runner-aaaaaaaaa", node="node-1")
    await seed.worker(
        "rise-riscv-runner-bbbbbbbbb",
        "failed",
        failure_reason="pod_failed",
        failure_info={"containers": [{"name": "runner", "exit_code": 1}], "events": [{"reason": "Failed"}]},
        completed_at=ago(),
    )
    await seed.board("node-1", worker="rise-riscv-runner-aaaaaaaaa")
    await seed.board("node-2", "not_ready", board=None)
    await seed.hold("pool", "vector", note="mending")
    await seed.hold("board", "node-2", "breaker", until=ago(hours=-1))
    await seed.event("workflow_job.queued", job_id=9, outcome="ignored_no_label", detail={"private": False})
    await seed.run("""
        INSERT INTO schedules (name, owner, enabled, type, spec, action, arguments, catch_up, catch_up_cap, quiet_hours,
            next_due_at, next_run_at, created_at, updated_at)
        SELECT name, 'api', true, 'cron', '0 8 * * *', 'pause', '{"pool": "vector", "for": 60}', 'run_all_capped', 2,
            '{"from": "22:00", "to": "06:00", "timezone": "UTC"}', at, at, at, at
        FROM unnest(ARRAY['vector', 'nights']) name, (SELECT timestamptz '2026-03-02 08:00Z' AS at) times
    """)
    await seed.run("""
        INSERT INTO occurrences (schedule, due_at, action, status, reason, created_at, error)
        SELECT 'nights', at - n * interval '1 day', 'pause', status, 'disabled', at, 'no'
        FROM unnest(ARRAY['pending', 'failed', 'skipped']) WITH ORDINALITY AS each (status, n),
            (SELECT timestamptz '2026-03-01 08:00Z' AS at) times
    """)


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    """The application in a thread of its own: schemathesis asks it from outside, as anyone would."""
    ready, urls = threading.Event(), []
    finish: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        url, stop = await databases.migrated(), asyncio.Event()
        async with opened(url) as database:
            await fill(Seed(database))
            async with serving(an_app(database, ManualClock())) as address:
                urls.append(address)
                finish.append((asyncio.get_running_loop(), stop))
                ready.set()
                await stop.wait()
        await databases.drop(url)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="api")
    thread.start()
    assert ready.wait(60)
    yield Server(urls[0])
    loop, stop = finish[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)


# Rules between fields (start before end, `until` in the future) are told in words: a schema cannot say them.
BEYOND_A_SCHEMA = [schemathesis.checks.positive_data_acceptance]
DOCUMENT = with_schedules(document())
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)]


def asked_in_every_way() -> list[Any]:
    """Every operation with values that fit the document and, where it takes any, with values that do not."""
    found = []
    for operation in OPERATIONS:
        for mode in GenerationMode:
            takes = list(operation.iter_parameters()) or operation.body.items
            if takes or mode is GenerationMode.POSITIVE:
                found.append(pytest.param(operation, mode, id=f"{operation.label} {mode.value}"))
    return found


@pytest.mark.parametrize(("operation", "mode"), asked_in_every_way())
def test_no_answer_is_undescribed(server: Server, operation: Any, mode: GenerationMode) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), known=st.sampled_from([*KNOWN, None]))
    def asked(case: Any, known: dict[str, Any] | None) -> None:
        if mode is GenerationMode.POSITIVE and known is not None:  # else nearly all would be 404
            case.path_parameters = {name: known[name] for name in case.path_parameters or ()}
        answer = case.call(base_url=server.url, headers=BEARER)
        case.validate_response(answer, excluded_checks=BEYOND_A_SCHEMA)

    asked()


def closed(schema: Any) -> Any:
    """The same schema, taking no property that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


ANSWERS = {
    "/overview.json": None,
    "/usage.json": None,
    "/jobs.json": None,
    "/workers.json": None,
    "/boards.json": None,
    "/queue.json": None,
    "/api/queue": None,
    "/jobs/{job_id}.json": (1, 2, 3, 4, 9),
    "/workers/{name}.json": ("rise-riscv-runner-aaaaaaaaa", "rise-riscv-runner-bbbbbbbbb"),
    "/api/jobs/{job_id}/explain": (1, 2, 3, 4, 9),
    "/schedules.json": None,
    "/api/schedules": None,
    "/api/schedules/{name}": ("nights",),
}


@pytest.mark.parametrize("path", ANSWERS)
@pytest.mark.parametrize("headers", [{}, BEARER], ids=["stranger", "admin"])
async def test_no_answer_has_a_field_that_is_not_described(
    stranger: httpx.AsyncClient, seed: Seed, path: str, headers: dict[str, str]
) -> None:
    await fill(seed)
    said = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    schema = closed({**said, "components": DOCUMENT["components"]})
    for known in ANSWERS[path] or (None,):
        answer = await stranger.get(path.format(job_id=known, name=known), headers=headers)
        assert answer.status_code == 200
        assert answer.json()
        jsonschema.validate(answer.json(), schema)


def test_every_read_is_held_to_its_description() -> None:
    reads = {path for path, operations in DOCUMENT["paths"].items() if "get" in operations}
    assert reads - {"/api/openapi.json", "/history.json"} == ANSWERS.keys()


def json_routes(app: Starlette) -> set[tuple[str, str]]:
    """Every address of the application that answers with JSON, by method."""
    found = set()
    for route in app.routes:
        if not isinstance(route, Route) or not (route.path.endswith(".json") or "/api/" in route.path):
            continue
        path = re.sub(r":\w+", "", route.path)
        found |= {(path, method) for method in route.methods or () if method != "HEAD"}
    return found


async def test_every_json_address_is_described_and_nothing_else(app: Starlette) -> None:
    described = {
        (path, method.upper())
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
        if method != "parameters"
    }
    assert described == json_routes(app)


@pytest.mark.parametrize(
    "days", ["0", "7", "9999", "10000", "00007", "19999", "20000", "20001", "99999", "000007"]
)
async def test_as_many_days_back_are_described_as_are_taken(stranger: httpx.AsyncClient, days: str) -> None:
    described = next(
        one for one in DOCUMENT["paths"]["/jobs.json"]["get"]["parameters"] if one["name"] == "start"
    )
    answer = await stranger.get(f"/jobs.json?start=-{days}d")
    fits = jsonschema.Draft202012Validator(described["schema"]).is_valid(f"-{days}d")
    assert (answer.status_code == 200) is fits is (int(days) <= 20_000 and len(days) < 6)


async def test_the_document_is_served_and_every_name_in_it_resolves(stranger: httpx.AsyncClient) -> None:
    served = (await stranger.get("/api/openapi.json")).json()
    assert served == DOCUMENT
    assert served["openapi"].startswith("3.1")
    names = set(re.findall(r"#/components/schemas/(\w+)", str(served)))
    assert names <= served["components"]["schemas"].keys()
    for schema in served["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


async def test_every_write_is_marked_as_needing_the_token() -> None:
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            if method in ("post", "patch", "delete"):
                assert operation["security"] == [{"admin": []}], (path, method)
                assert {"401", "403"} <= operation["responses"].keys()
