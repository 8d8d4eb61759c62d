"""Schedules through the API and the page: made, shown, switched, run, retried; by those who may."""

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import httpx
import jsonschema
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from controller.domain.constants import OCCURRENCE_LEASE
from controller.domain.jobs import Entity, EntityType, Scope
from controller.domain.schedules import Action
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.leader import Leadership
from controller.gateways.postgres.listener import Listener
from controller.gateways.postgres.occurrences import OccurrenceStore
from controller.settings import File
from tests.clocks import EPOCH, ManualClock
from tests.integration.schedules.clockwork import AnyTime, Clockwork, a_file, rows
from tests.integration.schedules.lives import a_schedule
from tests.integration.schedules.served import TOKEN, an_app
from tests.waiting import until

BEARER = {"Authorization": f"Bearer {TOKEN}", "X-Requested-By": "Anna"}
NIGHTS = {
    "name": "nights",
    "type": "cron",
    "spec": "0 22 * * *",
    "timezone": "Asia/Tokyo",
    "action": "pause",
    "with": {"pool": "rv1", "for": "8h"},
}
BUILD = {"repo": "acme/secret", "workflow": "nightly.yml", "ref": "main"}


@pytest.fixture
def clock() -> ManualClock:
    """The application's time."""
    return ManualClock()


@pytest.fixture
def file() -> File:
    """Settings with one schedule of their own."""
    return a_file([a_schedule("filed", "cron", "@daily", "prune")])


@pytest.fixture
def app(database: Database, clock: ManualClock, file: File) -> Starlette:
    """Pages and API as the program serves them."""
    return an_app(database, clock, file)


@pytest.fixture
async def epoch(database: Database, clock: ManualClock) -> AsyncIterator[int]:
    """Under which a leader writes."""
    leadership = Leadership(database, "test")
    assert await leadership.acquire(clock.now())
    assert leadership.epoch is not None
    yield leadership.epoch
    await leadership.drop()


def asking(app: Starlette, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
    """Somebody who asks."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://switchboard.test", headers=headers
    )


@pytest.fixture
async def admin(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """With the token."""
    async with asking(app, BEARER) as client:
        yield client


@pytest.fixture
async def stranger(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """Without one."""
    async with asking(app) as client:
        yield client


async def made(client: httpx.AsyncClient, **changes: Any) -> dict[str, Any]:
    """A schedule, made by the API."""
    answer = await client.post("/api/schedules", json={**NIGHTS, **changes})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_schedule_shows_its_next_five_times_in_its_own_zone_too(admin: httpx.AsyncClient) -> None:
    shown = await made(admin)
    assert [time["at"] for time in shown["next_times"]] == [
        f"2026-03-0{day}T13:00:00Z" for day in range(1, 6)
    ]
    assert shown["next_times"][0]["local"] == "Sun 2026-03-01 22:00 JST"
    assert (shown["status"], shown["next_run_at"]) == ("idle", "2026-03-01T13:00:00Z")
    page = (await admin.get("/schedules")).text
    assert "Sun 2026-03-01 22:00 JST" in page
    assert '<time datetime="2026-03-01T13:00:00Z">' in page
    (listed,) = (await admin.get("/api/schedules")).json()["schedules"]
    assert listed["with"] == {"pool": "rv1", "for": "8h"}


async def test_every_mistake_is_told_at_once(admin: httpx.AsyncClient) -> None:
    answer = await admin.post(
        "/api/schedules",
        json={"name": "UP", "type": "interval", "spec": "1.5h", "action": "pause", "with": {"pool": "none"}},
    )
    assert answer.status_code == 400
    message = answer.json()["message"]
    assert "name: " in message
    assert "spec: Decimal values are not supported; write 90m" in message
    assert "with.pool: there is no pool none" in message


async def test_a_name_is_taken_once(admin: httpx.AsyncClient) -> None:
    await made(admin)
    assert (await admin.post("/api/schedules", json=NIGHTS)).status_code == 409


async def test_what_is_changed_is_planned_anew(admin: httpx.AsyncClient) -> None:
    await made(admin)
    answer = await admin.patch("/api/schedules/nights", json={"spec": "30 23 * * *", "timezone": "UTC"})
    assert (answer.status_code, answer.json()["next_run_at"]) == (200, "2026-03-01T23:30:00Z")
    assert answer.json()["with"] == {"pool": "rv1", "for": "8h"}
    refused = await admin.patch("/api/schedules/nights", json={"spec": "61 * * * *"})
    assert (refused.status_code, "no cron expression" in refused.text) == (400, True)
    assert (await admin.patch("/api/schedules/none", json={"jitter": 1})).status_code == 404


async def test_a_disabled_schedule_says_so_and_is_not_run(
    admin: httpx.AsyncClient, database: Database
) -> None:
    await made(admin)
    off = await admin.patch("/api/schedules/nights", json={"enabled": False})
    assert (off.json()["status"], off.json()["next_times"]) == ("disabled", [])
    answer = await admin.post("/api/schedules/nights/run")
    assert (answer.status_code, "disabled" in answer.text) == (409, True)
    on = await admin.patch("/api/schedules/nights", json={"enabled": True})
    assert on.json()["next_run_at"] == "2026-03-01T13:00:00Z"
    kinds = await rows(database, "SELECT kind, source, who FROM events ORDER BY id")
    assert [row["kind"] for row in kinds] == ["schedule.created", "schedule.disabled", "schedule.enabled"]
    assert {(row["source"], row["who"]) for row in kinds} == {("admin", "Anna")}


async def test_run_now_does_what_the_schedule_does(admin: httpx.AsyncClient, database: Database) -> None:
    await made(admin)
    answer = await admin.post("/api/schedules/nights/run")
    assert (answer.status_code, answer.json()["status"], answer.json()["manual"]) == (201, "completed", True)
    (hold,) = await rows(database, "SELECT target, why, who FROM holds")
    assert hold == {"target": "rv1", "why": "pause", "who": "schedule nights"}
    (shown,) = (await admin.get("/schedules.json")).json()["schedules"]
    assert (shown["last_run_at"], shown["next_run_at"]) == ("2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z")


async def test_a_second_run_waits_for_the_first(admin: httpx.AsyncClient, clock: ManualClock) -> None:
    await made(admin, action="dispatch", **{"with": BUILD})
    assert (await admin.post("/api/schedules/nights/run")).status_code == 201
    await clock.advance(timedelta(seconds=1))
    answer = await admin.post("/api/schedules/nights/run")
    assert (answer.status_code, "already_running" in answer.text) == (409, True)
    queue = (await admin.get("/queue.json")).json()
    assert [row["status"] for row in queue["occurrences"]] == ["pending"]
    assert "nights" in (await admin.get("/queue")).text


async def test_only_a_failed_occurrence_is_retried(admin: httpx.AsyncClient, database: Database) -> None:
    await made(admin, action="dispatch", **{"with": BUILD})
    number = (await admin.post("/api/schedules/nights/run")).json()["id"]
    body = {"action": "retry"}
    assert (await admin.patch(f"/api/occurrences/{number}", json=body)).status_code == 409
    await rows(database, "UPDATE occurrences SET status = 'failed', attempts = 3, error = 'no' RETURNING 1")
    answer = await admin.patch(f"/api/occurrences/{number}", json=body)
    assert (answer.status_code, answer.json()["status"], answer.json()["attempts"]) == (200, "pending", 0)
    assert (await admin.patch("/api/occurrences/999", json=body)).status_code == 404
    assert (await admin.patch(f"/api/occurrences/{number}", json={"action": "x"})).status_code == 400


async def test_only_what_has_not_begun_is_cancelled(
    admin: httpx.AsyncClient, stranger: httpx.AsyncClient, database: Database
) -> None:
    await made(admin, action="dispatch", **{"with": BUILD})
    number = (await admin.post("/api/schedules/nights/run")).json()["id"]
    place = f"/api/occurrences/{number}"
    assert re.search(f"curl -X DELETE [^<]*{place}</code>", (await stranger.get("/queue")).text)
    assert re.search(f'action="{place}".*?value="cancel"', await as_signed_in(admin), re.DOTALL)
    await rows(database, "UPDATE occurrences SET sent_at = created_at")
    answer = await admin.delete(place)
    assert (answer.status_code, "cancel the run on GitHub" in answer.json()["message"]) == (409, True)
    await rows(database, "UPDATE occurrences SET sent_at = NULL")
    answer = await admin.request("DELETE", place, json={"note": "not tonight"})
    assert (answer.status_code, answer.json()["status"], answer.json()["reason"]) == (
        200,
        "skipped",
        "cancelled",
    )
    assert "Somebody cancelled it" in answer.json()["sentence"]
    assert (await admin.delete(place)).status_code == 409
    assert (await admin.delete("/api/occurrences/999")).status_code == 404
    (event,) = await rows(database, "SELECT who, detail FROM events WHERE kind = 'schedule.cancelled'")
    assert (event["who"], event["detail"]["note"]) == ("Anna", "not tonight")
    assert (await admin.post("/api/schedules/nights/run")).status_code == 201  # it waits for nobody any more


async def test_what_the_file_says_is_changed_in_the_file(
    admin: httpx.AsyncClient, database: Database, file: File
) -> None:
    process = Clockwork(database, file, AnyTime())
    await process.run()
    assert (await admin.patch("/api/schedules/filed", json={"spec": "@hourly"})).status_code == 409
    assert (await admin.delete("/api/schedules/filed")).status_code == 409
    off = await admin.patch("/api/schedules/filed", json={"enabled": False})
    assert off.json()["enabled"] is False
    await process.end()
    again = Clockwork(database, file, AnyTime(), seed=2)
    await again.run()  # a restart does not undo it
    await again.end()
    assert await rows(database, "SELECT enabled FROM schedules") == [{"enabled": False}]


async def test_a_schedule_of_the_api_is_deleted_and_its_occurrences_stay(
    admin: httpx.AsyncClient, database: Database
) -> None:
    await made(admin)
    await admin.post("/api/schedules/nights/run")
    assert (await admin.delete("/api/schedules/nights")).status_code == 200
    assert (await admin.get("/api/schedules/nights")).status_code == 404
    assert len(await rows(database, "SELECT 1 FROM occurrences")) == 1


async def test_strangers_see_whose_workflow_is_started_but_not_which(
    admin: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    await made(admin, action="dispatch", **{"with": BUILD})
    await admin.post("/api/schedules/nights/run")
    for path in ("/schedules", "/schedules.json", "/api/schedules", "/api/schedules/nights", "/queue"):
        seen = await stranger.get(path)
        assert (seen.status_code, "acme/secret" in seen.text, "nightly.yml" in seen.text) == (
            200,
            False,
            False,
        )
    assert "acme/secret" in (await admin.get("/schedules.json")).text
    page = (await stranger.get("/schedules")).text
    assert "curl -X POST" in page
    assert "/api/schedules/nights/run" in page


async def test_the_form_of_the_page_makes_runs_and_disables_one(app: Starlette, database: Database) -> None:
    async with asking(app) as browser:
        await browser.post("/login", data={"token": TOKEN, "name": "Anna", "next": "/schedules"})
        page = (await browser.get("/schedules")).text
        for preset in ("every 5 minutes", "hourly", "daily at midnight", "weekly on Monday"):
            assert f"<option>{preset}</option>" in page
        csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        form = {"name": "weekly", "preset": "weekly on Monday", "type": "cron", "spec": "", "timezone": "UTC"}
        form |= {"action": "pause", "with": '{"pool": "rv1", "for": "1h"}', "catchUp": "skip"}
        assert (await browser.post("/api/schedules", data=form)).status_code == 403  # without the CSRF token
        answer = await browser.post("/api/schedules", data={**form, "csrf": csrf, "back": "/schedules"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/schedules")
        assert "Mon 2026-03-02 00:00 UTC" in (await browser.get("/schedules")).text
        own = {"csrf": csrf, "back": "/schedules"}
        assert (await browser.post("/api/schedules/weekly/run", data=own)).status_code == 303
        off = await browser.post("/api/schedules/weekly", data={**own, "action": "disable"})
        assert off.status_code == 303
    assert await rows(database, "SELECT enabled FROM schedules") == [{"enabled": False}]
    assert await rows(database, "SELECT status, manual FROM occurrences") == [
        {"status": "completed", "manual": True}
    ]


async def test_the_examples_for_with_are_taken_as_they_stand(admin: httpx.AsyncClient) -> None:
    page = await as_signed_in(admin)
    shown = dict(re.findall(r"<li><b>(\w+)</b> <code>(.*?)</code>", page))
    assert set(shown) == set(Action)
    for action, example in shown.items():
        assert f"<option>{action}</option>" in page
        await made(admin, name=action, action=action, **{"with": json.loads(html.unescape(example))})


async def test_arguments_are_shown_in_the_order_of_their_description(admin: httpx.AsyncClient) -> None:
    await made(admin, action="dispatch", **{"with": {**BUILD, "inputs": {}}})
    (shown,) = (await admin.get("/schedules.json")).json()["schedules"]
    assert list(shown["with"]) == ["repo", "workflow", "ref", "inputs"]
    assert "<dt>inputs</dt>" not in await as_signed_in(admin)


async def test_the_lists_are_cut_into_slices(admin: httpx.AsyncClient, clock: ManualClock) -> None:
    await made(admin)
    for _ in range(3):
        await admin.post("/api/schedules/nights/run")
        await clock.advance(timedelta(minutes=1))
    answer = await admin.get("/schedules.json?per_page=2")
    assert len(answer.json()["occurrences"]) == 2
    assert 'rel="next"' in answer.headers["link"]
    assert (await admin.get("/schedules?page=0")).status_code == 400


async def test_text_that_no_database_takes_is_refused(admin: httpx.AsyncClient) -> None:
    body = {**NIGHTS, "action": "drain", "with": {"board": "a\x00b"}}
    assert (await admin.post("/api/schedules", json=body)).status_code == 400
    assert (await admin.post("/api/schedules/a%00b/run")).status_code == 404
    assert (await admin.get("/api/schedules/a%00b")).status_code == 404


async def test_the_document_describes_every_address_of_schedules_and_its_answers(
    app: Starlette, admin: httpx.AsyncClient
) -> None:
    described = (await admin.get("/api/openapi.json")).json()
    routes = {
        (route.path, method.lower())
        for route in app.routes
        if isinstance(route, Route) and ("schedules" in route.path or "occurrences" in route.path)
        for method in route.methods or ()
        if method != "HEAD" and route.path != "/schedules"
    }
    paths = described["paths"]
    assert routes == {
        (path, method)
        for path in paths
        if "schedules" in path or "occurrences" in path
        for method in paths[path]
        if method != "parameters"
    }

    def check(path: str, method: str, answer: httpx.Response) -> None:
        said = paths[path][method]["responses"][str(answer.status_code)]
        schema = {**said["content"]["application/json"]["schema"], "components": described["components"]}
        jsonschema.validate(answer.json(), schema)

    build = {**NIGHTS, "action": "dispatch", "with": BUILD}
    one = "/api/schedules/{name}"
    check("/api/schedules", "post", await admin.post("/api/schedules", json=build))
    check("/api/schedules", "post", await admin.post("/api/schedules", json=build))
    check(f"{one}/run", "post", await admin.post("/api/schedules/nights/run"))
    check("/api/schedules", "get", await admin.get("/api/schedules"))
    check(one, "get", await admin.get("/api/schedules/nights"))
    check(one, "patch", await admin.patch("/api/schedules/nights", json={"jitter": 3}))
    check(
        "/api/occurrences/{number}",
        "patch",
        await admin.patch("/api/occurrences/1", json={"action": "retry"}),
    )
    check(f"{one}/run", "post", await admin.post("/api/schedules/nights/run"))
    check("/api/occurrences/{number}", "delete", await admin.delete("/api/occurrences/1"))
    check("/api/occurrences/{number}", "delete", await admin.delete("/api/occurrences/1"))
    check(one, "delete", await admin.delete("/api/schedules/nights"))
    check(one, "delete", await admin.delete("/api/schedules/nights"))


async def test_of_two_who_take_a_name_at_once_one_is_refused(app: Starlette, database: Database) -> None:
    async with asking(app, BEARER) as one, asking(app, BEARER) as other:
        for number in range(8):
            body = {**NIGHTS, "name": f"n{number}"}
            answers = await asyncio.gather(*(each.post("/api/schedules", json=body) for each in (one, other)))
            assert sorted(answer.status_code for answer in answers) == [201, 409]
    assert len(await rows(database, "SELECT 1 FROM events WHERE kind = 'schedule.created'")) == 8


async def test_what_is_no_longer_in_the_file_can_be_deleted(
    admin: httpx.AsyncClient, database: Database, file: File
) -> None:
    for settings in (file, a_file([])):
        process = Clockwork(database, settings, AnyTime())
        await process.run()
        await process.end()
    assert 'value="delete"' in await as_signed_in(admin)
    assert (await admin.delete("/api/schedules/filed")).status_code == 200
    assert (await admin.post("/api/schedules", json={**NIGHTS, "name": "filed"})).status_code == 201


async def test_what_was_removed_from_the_file_is_changed_here_and_is_the_api_s_then(
    admin: httpx.AsyncClient, database: Database, file: File
) -> None:
    for settings in (file, a_file([])):
        process = Clockwork(database, settings, AnyTime())
        await process.run()
        await process.end()
    answer = await admin.patch("/api/schedules/filed", json={"spec": "@hourly", "enabled": True})
    assert (answer.status_code, answer.json()["owner"], answer.json()["spec"]) == (200, "api", "@hourly")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("type = 'webhook'", "does not know this type of schedule"),
        ("timezone = 'Mars/Olympus_Mons'", "no IANA time zone"),
        ("spec = 'on the first frost'", "cannot be planned"),
    ],
)
async def test_what_cannot_be_planned_is_not_enabled_and_says_why(
    admin: httpx.AsyncClient, database: Database, wrong: str, said: str
) -> None:
    await made(admin)
    await rows(database, f"UPDATE schedules SET enabled = false, {wrong}")
    answer = await admin.patch("/api/schedules/nights", json={"enabled": True})
    assert (answer.status_code, said in answer.json()["message"]) == (409, True)
    assert await rows(database, "SELECT enabled FROM schedules") == [{"enabled": False}]


async def as_signed_in(admin: httpx.AsyncClient, path: str = "/schedules") -> str:
    """The page with its buttons."""
    async with httpx.AsyncClient(transport=admin._transport, base_url=str(admin.base_url)) as browser:
        await browser.post("/login", data={"token": TOKEN, "name": "Anna"})
        return (await browser.get(path)).text


async def test_an_interval_counts_from_a_run_by_hand_and_a_cron_time_stays(
    admin: httpx.AsyncClient, clock: ManualClock
) -> None:
    await made(admin)
    await made(admin, name="often", type="interval", spec="1h")
    await clock.advance(timedelta(minutes=20))
    for name in ("nights", "often"):
        await admin.post(f"/api/schedules/{name}/run")
    shown = (await admin.get("/schedules.json")).json()["schedules"]
    assert {each["name"]: each["next_run_at"] for each in shown} == {
        "nights": "2026-03-01T13:00:00Z",
        "often": "2026-03-01T13:20:00Z",
    }


async def test_another_way_to_catch_up_needs_no_cap_any_more(admin: httpx.AsyncClient) -> None:
    await made(admin, catchUp="run_all_capped", catchUpCap=3)
    kept = await admin.patch("/api/schedules/nights", json={"catchUp": "run_all_capped"})
    assert kept.json()["catchUpCap"] == 3
    answer = await admin.patch("/api/schedules/nights", json={"catchUp": "skip"})
    assert (answer.status_code, answer.json()["catchUp"]) == (200, "skip")
    assert "catchUpCap" not in answer.json()


async def test_whoever_is_signed_in_reads_in_the_queue_why_an_occurrence_failed(
    admin: httpx.AsyncClient, stranger: httpx.AsyncClient, database: Database
) -> None:
    await made(admin, action="dispatch", **{"with": BUILD})
    await admin.post("/api/schedules/nights/run")
    await rows(
        database, "UPDATE occurrences SET status = 'failed', error = 'no nightly.yml there' RETURNING 1"
    )
    for path in ("/queue", "/queue.json"):
        assert "no nightly.yml there" in (await admin.get(path)).text
        assert "no nightly.yml there" not in (await stranger.get(path)).text


WARMTH = {"entity": "acme", "labels": ["rv1"], "runners": 1, "for": "2h"}


async def an_occurrence(
    database: Database, schedule: str, status: str, now: datetime, action: str = "warm", **more: Any
) -> datetime | None:
    """One of a schedule; gives the end of its window if that is open."""
    later = now + timedelta(hours=2) if status == "running" and not more else None
    values = {"schedule": schedule, "due_at": now, "action": action, "status": status, "warm_until": later}
    values |= {"created_at": now, **more}
    names = ", ".join(values)
    given = ", ".join(f"%({name})s" for name in values)
    await rows(database, f"INSERT INTO occurrences ({names}) VALUES ({given})", **values)
    return later


async def stopped(admin: httpx.AsyncClient, how: str) -> None:
    """The schedule nights is switched off or gone."""
    body = {"enabled": False} if how == "disable" else {"enabled": False, "jitter": 1}
    address = "/api/schedules/nights"
    answer = await (admin.delete(address) if how == "delete" else admin.patch(address, json=body))
    assert answer.status_code == 200


@pytest.mark.parametrize("how", ["disable", "change", "delete"])
@pytest.mark.parametrize(("status", "left"), [("running", "running"), ("pending", "skipped")])
async def test_disabling_or_deleting_a_schedule_ends_its_warm_window(
    admin: httpx.AsyncClient, database: Database, clock: ManualClock, how: str, status: str, left: str
) -> None:
    await made(admin, action="warm", **{"with": WARMTH})
    later = await an_occurrence(database, "nights", status, clock.now())
    await stopped(admin, how)
    (seen,) = await rows(database, "SELECT status, warm_until FROM occurrences")
    assert (seen["status"], seen["warm_until"]) == (left, clock.now() if later else None)


@pytest.mark.parametrize("how", ["disable", "change", "delete"])
async def test_disabling_or_deleting_a_schedule_takes_back_what_waits_or_is_about_to_begin(
    admin: httpx.AsyncClient, database: Database, clock: ManualClock, how: str
) -> None:
    """A night in back-off, nights that are made good, a window or a start in somebody's hands."""
    await made(admin, action="dispatch", **{"with": BUILD})
    now = clock.now()
    lease: dict[str, Any] = {"leased_until": now + timedelta(minutes=5)}
    waiting: list[tuple[str, str, dict[str, Any]]] = [
        ("pending", "dispatch", {"attempts": 2, "retry_after": now + timedelta(minutes=2)}),
        ("pending", "dispatch", {"caught_up": True}),
        ("running", "dispatch", lease),
        ("running", "warm", lease),
        ("pending", "prune", {}),
    ]
    done: list[tuple[str, str, dict[str, Any]]] = [
        ("running", "prune", lease),
        ("failed", "dispatch", {}),
        ("completed", "warm", {}),
    ]
    for minute, (status, action, more) in enumerate([*waiting, *done]):
        at = now + timedelta(minutes=minute)
        await an_occurrence(database, "nights", status, at, action, **more)
    await an_occurrence(database, "others", "pending", now, "dispatch")
    await stopped(admin, how)
    found = await rows(
        database, "SELECT schedule, status, reason, leased_until FROM occurrences ORDER BY due_at, id"
    )
    own = [row for row in found if row.pop("schedule") == "nights"]
    taken_back = {"status": "skipped", "reason": "disabled", "leased_until": None}
    assert own[: len(waiting)] == [taken_back] * len(waiting)
    assert [row["status"] for row in own[len(waiting) :]] == ["running", "failed", "completed"]
    assert (await rows(database, "SELECT status FROM occurrences WHERE schedule = 'others'")) == [
        {"status": "pending"}
    ]
    told = await rows(database, "SELECT outcome FROM events WHERE kind = 'schedule.skipped'")
    assert told == [{"outcome": "disabled"}] * len(waiting)


@pytest.mark.parametrize("how", ["disable", "change", "delete"])
async def test_a_window_that_is_about_to_open_stays_shut_when_its_schedule_is_stopped(
    admin: httpx.AsyncClient, database: Database, clock: ManualClock, epoch: int, how: str
) -> None:
    """Its account is being asked for meanwhile: whoever holds it may not open it behind the stop."""
    await made(admin, action="warm", **{"with": WARMTH})
    await admin.post("/api/schedules/nights/run")
    store = OccurrenceStore(database, "test")
    held = await store.claim(epoch, clock.now())
    assert held is not None
    await stopped(admin, how)
    scope = Scope("111", 31, Entity(5, "acme", EntityType.ORGANIZATION))
    later = clock.now() + timedelta(hours=2)
    assert not await store.open_window(held, scope, later, epoch, clock.now())
    assert await rows(database, "SELECT status, warm_until FROM occurrences") == [
        {"status": "skipped", "warm_until": None}
    ]


@pytest.mark.parametrize("writer", ["the holder", "the look after expired leases"])
async def test_a_schedule_may_be_stopped_at_the_moment_at_which_its_failure_is_written(
    admin: httpx.AsyncClient, database: Database, clock: ManualClock, epoch: int, writer: str
) -> None:
    """Both write the schedule and its occurrence; in two orders they would wait for each other."""
    await made(admin, action="dispatch", **{"with": BUILD})
    await admin.post("/api/schedules/nights/run")
    store = OccurrenceStore(database, "test")
    held = await store.claim(epoch, clock.now())
    assert held is not None
    await rows(database, "UPDATE occurrences SET attempts = 4")

    async def waiting(count: int) -> None:
        async def are() -> bool:
            (locks,) = await rows(database, "SELECT count(*) AS waiting FROM pg_locks WHERE NOT granted")
            return bool(locks["waiting"] >= count)

        await until(are)

    async with asyncio.TaskGroup() as both, database.transaction() as connection:
        await connection.execute("SELECT 1 FROM occurrences FOR UPDATE")
        if writer == "the holder":
            both.create_task(store.fail(held, "no such workflow", epoch, clock.now()))
        else:
            both.create_task(store.reclaim((), epoch, clock.now() + OCCURRENCE_LEASE))
        await waiting(1)
        answer = both.create_task(admin.patch("/api/schedules/nights", json={"enabled": False}))
        await waiting(2)
    assert answer.result().status_code == 200
    assert await rows(database, "SELECT status FROM occurrences") == [{"status": "failed"}]
    (schedule,) = await rows(database, "SELECT enabled, last_error FROM schedules")
    assert (schedule["enabled"], schedule["last_error"] is not None) == (False, True)


async def test_what_has_the_higher_priority_has_its_turn_first(
    admin: httpx.AsyncClient, database: Database, clock: ManualClock, epoch: int
) -> None:
    shown = await made(admin, action="dispatch", priority=3, **{"with": BUILD})
    assert shown["priority"] == 3
    for name, more in (("mornings", {"priority": 8}), ("evenings", {})):
        await made(admin, name=name, action="dispatch", **{"with": BUILD, **more})
    for name in ("nights", "mornings", "evenings"):
        assert (await admin.post(f"/api/schedules/{name}/run")).status_code == 201
        await clock.advance(timedelta(seconds=1))
    store = OccurrenceStore(database, "test")
    taken = [await store.claim(epoch, clock.now()) for _ in range(3)]
    assert [each.schedule for each in taken if each] == [
        "evenings",
        "mornings",
        "nights",
    ]  # 10 unless it is said
    refused = await admin.patch("/api/schedules/nights", json={"priority": 11})
    assert (refused.status_code, "priority" in refused.json()["message"]) == (400, True)
    page = (await admin.get("/schedules", headers={"Accept": "text/html"})).text
    assert "priority 3 of 10" in page
    assert "priority 10 of 10" not in page


async def test_changing_a_one_shot_that_has_fired_leaves_its_window_open(
    admin: httpx.AsyncClient, database: Database, clock: ManualClock
) -> None:
    await made(admin, action="warm", **{"with": WARMTH})
    await rows(database, "UPDATE schedules SET enabled = false")  # as a one-shot does that has fired
    later = await an_occurrence(database, "nights", "running", clock.now())
    assert (await admin.patch("/api/schedules/nights", json={"jitter": 2})).status_code == 200
    assert await rows(database, "SELECT warm_until FROM occurrences") == [{"warm_until": later}]


@pytest.mark.parametrize("left", [[], [{"enabled": False}]], ids=["removed", "disabled"])
@pytest.mark.parametrize(("status", "then"), [("running", "completed"), ("pending", "skipped")])
async def test_a_window_ends_when_the_file_takes_its_schedule_back(
    database: Database, left: list[dict[str, Any]], status: str, then: str
) -> None:
    warm = a_schedule("mornings", "cron", "@yearly", "warm", given=WARMTH)
    clock = AnyTime()
    before = Clockwork(database, a_file([warm]), clock)
    await before.run()
    await before.end()
    await an_occurrence(database, "mornings", status, clock.now())
    after = Clockwork(database, a_file([{**warm, **change} for change in left]), clock)
    await after.run()
    await after.end()
    assert await rows(database, "SELECT status FROM occurrences") == [{"status": then}]


async def test_the_jobs_of_a_run_are_one_link_away(admin: httpx.AsyncClient, database: Database) -> None:
    await made(admin, action="dispatch", **{"with": BUILD})
    await admin.post("/api/schedules/nights/run")
    await rows(database, "UPDATE occurrences SET status = 'completed', run_id = 77 RETURNING 1")
    for number, run in ((1, 77), (2, 78)):
        await rows(
            database,
            "INSERT INTO jobs (job_id, entity_id, entity_name, entity_type, repo, labels, status, run_id, app_id,"
            " installation_id, created_at, updated_at, seen_at, heard_at, poll_at) VALUES (%(number)s, 5, 'acme',"
            " 'Organization', 'acme/secret', '{rv1}', 'running', %(run)s, '111', 5, %(at)s, %(at)s, %(at)s, %(at)s,"
            " %(at)s) RETURNING 1",
            number=number,
            run=run,
            at=EPOCH,
        )
    assert 'href="/jobs?run=77"' in (await admin.get("/schedules")).text
    page = (await admin.get("/jobs?run=77")).text
    assert 'href="/jobs/1"' in page
    assert 'href="/jobs/2"' not in page


async def test_every_form_and_command_has_a_place_for_the_reason_and_the_event_keeps_it(
    admin: httpx.AsyncClient, stranger: httpx.AsyncClient, app: Starlette, database: Database
) -> None:
    await made(admin)
    page = (await stranger.get("/schedules")).text
    for method, address in (("POST", "nights/run"), ("PATCH", "nights"), ("DELETE", "nights")):
        command = f"curl -X {method} [^<]*note[^<]*/api/schedules/{address}</code>"
        assert re.search(command, page), method
    async with asking(app) as browser:
        await browser.post("/login", data={"token": TOKEN, "name": "Anna"})
        page = (await browser.get("/schedules")).text
        forms = re.findall(
            r"<form (.*?)</form>", page.partition("<main")[2].partition("</main>")[0], re.DOTALL
        )
        assert len(forms) == 2
        assert all('name="note"' in form for form in forms)
        assert 'formaction="/api/schedules/nights/run"' in forms[0]
        csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        for path, action in (("/run", None), ("", "disable"), ("", "delete")):
            body = {"csrf": csrf, "back": "/schedules", "note": f"because {action}"}
            body |= {"action": action} if action else {}
            assert (await browser.post(f"/api/schedules/nights{path}", data=body)).status_code == 303
    noted = await rows(
        database, "SELECT kind, who, detail->>'note' AS note FROM events WHERE source = 'admin' ORDER BY id"
    )
    assert [tuple(row.values()) for row in noted[1:]] == [
        ("schedule.run", "Anna", "because None"),
        ("schedule.disabled", "Anna", "because disable"),
        ("schedule.deleted", "Anna", "because delete"),
    ]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/run"), ("PATCH", ""), ("DELETE", "")], ids=["run", "change", "delete"]
)
async def test_what_is_done_by_hand_rings_the_loop(
    admin: httpx.AsyncClient, database: Database, clock: ManualClock, method: str, path: str
) -> None:
    await made(admin)
    woken = asyncio.Event()
    task = asyncio.create_task(Listener(database, clock, woken.set).run())
    try:
        async with asyncio.timeout(60):
            await woken.wait()  # it rings once when it has begun to listen
            woken.clear()
            body = {"enabled": False} if method == "PATCH" else None
            answer = await admin.request(method, f"/api/schedules/nights{path}", json=body)
            assert answer.status_code in (200, 201)
            await woken.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("address", ["/api/schedules/nights?full=1", "/api/openapi.json?full=1"])
async def test_an_unknown_field_is_refused_with_a_sentence(admin: httpx.AsyncClient, address: str) -> None:
    await made(admin)
    answer = await admin.get(address)
    assert answer.status_code == 400
    assert "There is no parameter 'full' here" in answer.json()["message"]


async def test_hostile_text_in_schedules_is_shown_as_text(
    admin: httpx.AsyncClient, stranger: httpx.AsyncClient, database: Database
) -> None:
    await made(admin)
    await admin.post("/api/schedules/nights/run")
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> {{ 7*7 }}"
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE schedules SET last_error = %(text)s, spec = %(text)s, type = %(text)s,"
            " arguments = jsonb_build_object('pool', %(text)s::text, %(text)s::text, %(text)s::text)",
            {"text": hostile},
        )
        await connection.execute(
            "UPDATE occurrences SET error = %(text)s, result = %(text)s, reason = %(text)s, status = 'failed'",
            {"text": hostile},
        )
    for client in (admin, stranger):
        for address in ("/schedules", "/queue"):
            page = (await client.get(address)).text
            assert "&lt;script&gt;alert(1)" in page
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "{{ 7*7 }}" in page
