"""Writes: what each changes, what it refuses, and the event it leaves."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from psycopg.rows import DictRow

from controller.gateways.postgres.database import Database
from controller.web.api import HOLDABLE
from tests.clocks import EPOCH
from tests.integration.api.conftest import BEARER, a_client
from tests.integration.postgres.queries import rows
from tests.integration.web_pages.seeding import Seed


async def state(database: Database) -> list[list[DictRow]]:
    """All that a write could have changed."""
    tables = ("jobs", "holds", "pardons", "events")
    return [await rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]


@pytest.fixture
async def queued(seed: Seed) -> None:
    """Something for every write to act upon."""
    await seed.job(1, attempts=2, mark="gave_up", retry_after=EPOCH + timedelta(minutes=4))
    await seed.board("node-1")


@pytest.mark.usefixtures("queued")
async def test_retry_clears_attempts_mark_and_waiting_time(
    admin: httpx.AsyncClient, database: Database
) -> None:
    answer = await admin.patch("/api/queue/1", json={"action": "retry"})
    assert (answer.json()["mark"], answer.json()["attempts"], answer.json()["reason"]) == (None, 0, None)
    (job,) = await rows(database, "SELECT attempts, own_faults, mark, retry_after FROM jobs")
    assert job == {"attempts": 0, "own_faults": 0, "mark": None, "retry_after": None}


@pytest.mark.usefixtures("queued")
async def test_cancel_sets_the_mark_and_the_job_says_so_at_once(
    admin: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    assert (await admin.delete("/api/queue/1")).json()["mark"] == "cancelled"
    told = (await stranger.get("/api/jobs/1/explain")).json()
    assert told["reason"] == "cancelled"


@pytest.mark.parametrize("status", ["running", "completed", "failed"])
@pytest.mark.parametrize("action", ["retry", "cancel"])
async def test_a_job_that_is_no_longer_pending_is_left_alone(
    admin: httpx.AsyncClient, database: Database, seed: Seed, status: str, action: str
) -> None:
    await seed.job(1, status)
    before = await state(database)
    answer = await admin.patch("/api/queue/1", json={"action": action})
    assert answer.status_code == 409
    assert "GitHub" in answer.json()["message"] or status == "running"
    assert await state(database) == before


@pytest.mark.parametrize("address", ["/api/queue/2", "/api/queue/x", "/api/queue/0", f"/api/queue/{10**30}"])
async def test_a_job_that_is_not_there_is_404(admin: httpx.AsyncClient, address: str) -> None:
    for answer in (await admin.patch(address, json={"action": "retry"}), await admin.delete(address)):
        assert answer.status_code == 404
        assert answer.json()["message"].endswith(".")


async def test_retry_and_cancel_at_once_end_in_the_state_of_the_last_event(
    app: Any, database: Database, seed: Seed
) -> None:
    async with a_client(app, BEARER) as one, a_client(app, BEARER) as other:
        for job_id in range(1, 21):
            await seed.job(job_id, attempts=3, mark="gave_up")
            answers = await asyncio.gather(
                one.patch(f"/api/queue/{job_id}", json={"action": "retry"}),
                other.delete(f"/api/queue/{job_id}"),
                other.patch(f"/api/queue/{job_id}", json={"action": "retry"}),
                one.delete(f"/api/queue/{job_id}"),
            )
            assert [answer.status_code for answer in answers] == [200] * 4
    found = await rows(
        database,
        """
        SELECT j.mark, j.skip_reason, j.attempts, (SELECT array_agg(kind ORDER BY id) FROM events e
            WHERE e.job_id = j.job_id) AS kinds FROM jobs j
        """,
    )
    assert len(found) == 20
    for job in found:
        assert len(job["kinds"]) == 4
        wanted = "cancelled" if job["kinds"][-1] == "job.cancelled" else None
        assert (job["mark"], job["skip_reason"], job["attempts"]) == (wanted, wanted, 0)


@pytest.mark.usefixtures("queued")
@pytest.mark.parametrize(("scope", "plural", "verb"), [(scope.value, *more) for scope, *more in HOLDABLE])
async def test_a_hold_is_set_changed_and_lifted(
    admin: httpx.AsyncClient, database: Database, scope: str, plural: str, verb: str
) -> None:
    name = {"pool": "vector", "entity": "Example-Org", "board": "node-1"}[scope]
    place = f"/api/{plural}/{name}"
    first = (await admin.post(f"{place}/{verb}", json={"note": "mending"})).json()
    assert first["held"] is True
    assert first["holds"][0]["until"] is None
    second = (await admin.post(f"{place}/{verb}", json={"for": "2h"})).json()
    assert second["holds"][0]["until"] == "2026-03-01T14:00:00Z"
    (hold,) = await rows(database, "SELECT scope, target, why FROM holds")
    assert hold == {"scope": scope, "target": name.lower(), "why": "drain" if verb == "drain" else "pause"}
    last = (await admin.post(f"{place}/resume")).json()
    assert last == {"scope": scope, "target": name.lower(), "held": False, "holds": []}
    kinds = [row["kind"] for row in await rows(database, "SELECT kind FROM events ORDER BY id")]
    done = f"{scope}.{'drained' if verb == 'drain' else 'paused'}"
    assert kinds == [done, done, f"{scope}.resumed"]


@pytest.mark.parametrize("place", ["/api/pools/nope", "/api/entities/nobody", "/api/boards/nowhere"])
async def test_what_is_not_known_cannot_be_held(
    admin: httpx.AsyncClient, database: Database, place: str
) -> None:
    verb = "drain" if "boards" in place else "pause"
    for action in (verb, "resume"):
        answer = await admin.post(f"{place}/{action}")
        assert answer.status_code == 404
        assert answer.json()["message"]
    assert await rows(database, "SELECT * FROM holds") == []


async def test_quiet_hours_stay_and_the_answer_says_so(admin: httpx.AsyncClient, seed: Seed) -> None:
    await seed.hold("pool", "vector")
    await seed.hold("pool", "vector", "quiet_hours", until=EPOCH + timedelta(hours=1))
    answer = (await admin.post("/api/pools/vector/resume")).json()
    assert [hold["why"] for hold in answer["holds"]] == ["quiet_hours"]


@pytest.mark.usefixtures("queued")
@pytest.mark.parametrize(
    ("address", "body", "told"),
    [
        ("/api/pools/vector/pause", {"for": "2"}, "for: Missing time unit"),
        ("/api/pools/vector/pause", {"for": "1.5h"}, "90m"),
        ("/api/pools/vector/pause", {"for": "999999999999d"}, "too long"),
        ("/api/pools/vector/pause", {"until": "2020-01-01T00:00:00Z"}, "passed"),
        ("/api/pools/vector/pause", {"until": "2030-01-01T00:00:00"}, "timezone"),
        ("/api/pools/vector/pause", {"until": "2030-01-01T00:00:00Z", "for": "1h"}, "not both"),
        ("/api/pools/vector/pause", {"note": "x" * 501}, "500"),
        ("/api/pools/vector/pause", {"note": "a\x00b"}, "plain text"),
        ("/api/pools/vector/pause", {"unti": "tomorrow"}, "unknown field"),
        ("/api/queue/1", {}, "missing"),
        ("/api/queue/1", {"action": "explode"}, "retry"),
    ],
)
async def test_a_bad_body_is_refused_with_a_sentence(
    admin: httpx.AsyncClient, database: Database, address: str, body: dict[str, str], told: str
) -> None:
    answer = await admin.post(address, json=body)
    assert answer.status_code == 400
    assert told in answer.json()["message"]
    assert await rows(database, "SELECT * FROM events") == []


@pytest.mark.usefixtures("queued")
@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b'"retry"', b"\xff", b"[" * 50_000])
async def test_a_body_that_is_no_object_is_refused(admin: httpx.AsyncClient, body: bytes) -> None:
    answer = await admin.patch("/api/queue/1", content=body)
    assert answer.status_code == 400
    assert answer.json()["message"] == "The body must be a JSON object."


async def test_a_body_beyond_the_limit_is_refused(admin: httpx.AsyncClient) -> None:
    answer = await admin.patch("/api/queue/1", content=b" " * (64 * 1024 + 1))
    assert answer.status_code == 413


@pytest.mark.usefixtures("queued")
async def test_what_curl_sends_is_understood(admin: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await admin.patch("/api/queue/1", content=b'{"action": "retry"}', headers=headers)
    assert answer.status_code == 200
