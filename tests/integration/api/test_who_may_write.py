"""Every write of the program without, with a wrong, and with the right token; and by a form of another site.

The writes are those of the routes that a controller serves: one that is not tried here fails the first test.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from psycopg.rows import DictRow
from starlette.routing import Route

from controller.gateways.postgres.database import Database
from controller.settings import File
from tests.clocks import EPOCH, ManualClock
from tests.integration.api.conftest import a_client
from tests.integration.postgres.queries import rows
from tests.integration.schedules.clockwork import a_file
from tests.integration.schedules.served import TOKEN, an_app
from tests.integration.web_pages.seeding import Seed

SIGNING = {("POST", "/login"), ("POST", "/logout")}  # these have tests of their own
READS = {"GET", "HEAD"}
NIGHTS = {"type": "cron", "spec": "0 22 * * *", "action": "pause", "with": {"pool": "rv1", "for": "8h"}}
RIGHT = {"Authorization": f"Bearer {TOKEN}", "X-Requested-By": "Anna"}


@dataclass(frozen=True, slots=True)
class Write:
    """One that an admin may do on what `filled` has written."""

    method: str
    route: str
    address: str
    body: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.route}"


def a_write(method: str, route: str, parameter: str = "", /, **body: Any) -> Write:
    """Fill in the only parameter of a route."""
    head, _, tail = route.partition("{")
    return Write(method, route, f"{head}{parameter}{tail.partition('}')[2]}", body)


WRITES = [
    a_write("PATCH", "/api/queue/{job_id}", "1", action="retry"),
    a_write("POST", "/api/queue/{job_id}", "1", action="cancel"),
    a_write("DELETE", "/api/queue/{job_id}", "1"),
    a_write("POST", "/api/pools/{name}/pause", "rv1"),
    a_write("POST", "/api/pools/{name}/resume", "rv1"),
    a_write("POST", "/api/entities/{name}/pause", "example-org"),
    a_write("POST", "/api/entities/{name}/resume", "example-org"),
    a_write("POST", "/api/boards/{name}/drain", "node-1"),
    a_write("POST", "/api/boards/{name}/resume", "node-1"),
    a_write("POST", "/api/schedules", name="new", **NIGHTS),
    a_write("PATCH", "/api/schedules/{name}", "nights", enabled=False),
    a_write("PATCH", "/api/schedules/{name}", "nights", jitter=3),
    a_write("POST", "/api/schedules/{name}", "nights", action="disable"),
    a_write("DELETE", "/api/schedules/{name}", "nights"),
    a_write("POST", "/api/schedules/{name}/run", "nights"),
    a_write("PATCH", "/api/occurrences/{number}", "1", action="retry"),
    a_write("POST", "/api/occurrences/{number}", "1", action="retry"),
    a_write("POST", "/api/occurrences/{number}", "2", action="cancel"),
    a_write("DELETE", "/api/occurrences/{number}", "2"),
]
of_every_write = pytest.mark.parametrize("write", WRITES, ids=str)


@pytest.fixture
def file() -> File:
    """Settings with the pool rv1 and no schedules."""
    return a_file([])


@pytest.fixture(autouse=True)
async def filled(database: Database, clock: ManualClock, file: File, seed: Seed) -> None:
    """Something for every write to act upon."""
    await seed.job(1, attempts=2, mark="gave_up", retry_after=EPOCH + timedelta(minutes=4))
    await seed.board("node-1")
    async with a_client(an_app(database, clock, file), RIGHT) as admin:
        assert (await admin.post("/api/schedules", json={"name": "nights", **NIGHTS})).status_code == 201
    await seed.run(
        "INSERT INTO occurrences (schedule, due_at, action, status, created_at)"
        " VALUES ('gone', now(), 'prune', 'failed', now()), ('kept', now(), 'prune', 'pending', now())"
    )


@asynccontextmanager
async def nothing_changes(database: Database) -> AsyncIterator[None]:
    """Whatever is done meanwhile leaves no trace."""
    before = await state(database)
    yield
    assert await state(database) == before


async def state(database: Database) -> list[list[DictRow]]:
    """All that a write could change."""
    tables = ("jobs", "holds", "pardons", "schedules", "occurrences", "events")
    return [await rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]


async def test_every_write_of_the_program_is_tried_here(
    database: Database, clock: ManualClock, file: File
) -> None:
    served = {
        (method, route.path)
        for route in an_app(database, clock, file).routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - READS
    }
    assert served - SIGNING == {(write.method, write.route) for write in WRITES}


@of_every_write
async def test_nobody_writes_without_a_token(
    database: Database, clock: ManualClock, file: File, write: Write
) -> None:
    async with nothing_changes(database), a_client(an_app(database, clock, file)) as stranger:
        answer = await stranger.request(write.method, write.address, json=write.body)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert "SWITCHBOARD_ADMIN_TOKEN" in answer.json()["message"]


@of_every_write
@pytest.mark.parametrize(
    ("accept", "kind"), [("*/*", "application/json"), ("text/html,*/*;q=0.8", "text/html")]
)
async def test_a_refusal_is_a_page_for_a_browser_and_json_for_curl_which_calls_everything_a_form(
    database: Database, clock: ManualClock, file: File, write: Write, accept: str, kind: str
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": accept}
    async with nothing_changes(database), a_client(an_app(database, clock, file)) as stranger:
        body = json.dumps(write.body)
        answer = await stranger.request(write.method, write.address, content=body, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["Content-Type"].startswith(kind)


@of_every_write
async def test_nobody_writes_with_a_wrong_token(
    database: Database, clock: ManualClock, file: File, write: Write
) -> None:
    async with nothing_changes(database), a_client(an_app(database, clock, file)) as stranger:
        for claimed in ("wrong", "", TOKEN[:-1], f"{TOKEN}x", "é"):
            headers = {b"Authorization": f"Bearer {claimed}".encode()}
            answer = await stranger.request(write.method, write.address, json=write.body, headers=headers)
            assert answer.status_code == 403, claimed


@of_every_write
async def test_without_a_configured_token_every_write_is_refused(
    database: Database, clock: ManualClock, file: File, write: Write
) -> None:
    async with nothing_changes(database), a_client(an_app(database, clock, file, token=None)) as client:
        for headers in ({}, RIGHT, {"Authorization": "Bearer "}, {"Authorization": "Bearer None"}):
            answer = await client.request(write.method, write.address, json=write.body, headers=headers)
            assert answer.status_code == 403, headers


@of_every_write
async def test_a_session_alone_writes_nothing(
    database: Database, clock: ManualClock, file: File, write: Write
) -> None:
    """The browser sends the cookie whoever has made the form; only our pages know what belongs into it."""
    async with a_client(an_app(database, clock, file)) as browser:
        assert (await browser.post("/login", data={"token": TOKEN, "name": "Anna"})).status_code == 303
        async with nothing_changes(database):
            for csrf in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": "é"}):
                sent = {**write.body, **csrf}
                as_json = await browser.request(write.method, write.address, json=sent)
                as_form = await browser.request(write.method, write.address, data=sent)
                assert (as_json.status_code, as_form.status_code) == (403, 403), csrf


@of_every_write
async def test_the_right_token_writes_and_leaves_an_event_with_who_and_why(
    database: Database, clock: ManualClock, file: File, write: Write
) -> None:
    (last,) = await rows(database, "SELECT max(id) AS id FROM events")
    async with a_client(an_app(database, clock, file), RIGHT) as admin:
        answer = await admin.request(write.method, write.address, json={**write.body, "note": "because"})
        assert answer.is_success, answer.text
    told = await rows(
        database,
        "SELECT who, detail->>'note' AS note FROM events WHERE id > %(id)s AND source = 'admin'",
        id=last["id"],
    )
    assert told == [{"who": "Anna", "note": "because"}]
