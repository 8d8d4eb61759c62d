"""Signing in: a token for a cookie, forms that only our pages can send, and nobody sent elsewhere."""

import re
from datetime import timedelta
from http.cookies import SimpleCookie

import httpx
import pytest
from starlette.applications import Starlette

from controller.gateways.postgres.database import Database
from controller.web.sessions import SESSION_LENGTH
from tests.clocks import ManualClock
from tests.integration.api.conftest import SERVER, TOKEN, a_client, an_app
from tests.integration.postgres.queries import rows
from tests.integration.web_pages.seeding import Seed


def csrf_on(page: str) -> str:
    """The token in the forms of a page."""
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert found, "the page has no form"
    return found[1]


async def test_the_cookie_is_not_the_token_and_no_script_or_other_site_gets_it(
    stranger: httpx.AsyncClient,
) -> None:
    answer = await stranger.post("/login", data={"token": TOKEN, "next": "/boards"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/boards")
    said = answer.headers["Set-Cookie"]
    (morsel,) = SimpleCookie(said).values()
    assert TOKEN not in said
    assert morsel["httponly"]
    assert morsel["samesite"] == "strict"
    assert (morsel["path"], morsel["secure"]) == ("/", "")


async def test_behind_https_the_cookie_travels_encrypted_only(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.post("/login", data={"token": TOKEN}, headers={"X-Forwarded-Proto": "https"})
    assert "; Secure" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize("claimed", ["", "wrong", TOKEN[:-1], "é"])
async def test_a_wrong_token_opens_no_session(stranger: httpx.AsyncClient, claimed: str) -> None:
    answer = await stranger.post("/login", data={"token": claimed})
    assert answer.status_code == 403
    assert "Set-Cookie" not in answer.headers
    assert "not the admin token" in answer.text
    if claimed:
        assert claimed not in answer.text


async def test_without_a_configured_token_nobody_signs_in(database: Database, clock: ManualClock) -> None:
    async with a_client(an_app(database, clock, token=None)) as client:
        assert 'name="token"' not in (await client.get("/login")).text
        for claimed in ("", "None"):
            answer = await client.post("/login", data={"token": claimed})
            assert answer.status_code == 403
            assert "Set-Cookie" not in answer.headers
        assert "Sign in" not in (await client.get("/")).text


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "javascript:alert(1)",
        "evil.example",
        "/a\r\nSet-Cookie: x=1",
        "http:evil.example",
        "///evil.example",
        "",
    ],
)
async def test_nobody_is_sent_to_another_place_after_signing_in(
    stranger: httpx.AsyncClient, browser: httpx.AsyncClient, seed: Seed, elsewhere: str
) -> None:
    answer = await stranger.post("/login", data={"token": TOKEN, "next": elsewhere})
    assert answer.headers["Location"] == "/"
    assert (await browser.get("/login", params={"next": elsewhere})).headers["Location"] == "/"
    await seed.job(1)
    fields = {"action": "cancel", "csrf": csrf_on((await browser.get("/queue")).text), "back": elsewhere}
    answer = await browser.post("/api/queue/1", data=fields)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")


async def test_a_button_acts_in_the_name_of_who_signed_in_and_comes_back(
    browser: httpx.AsyncClient, database: Database, seed: Seed
) -> None:
    await seed.job(1)
    page = (await browser.get("/queue?status=pending")).text
    fields = {"action": "cancel", "csrf": csrf_on(page), "back": "/queue?status=pending", "note": "a typo"}
    assert page.count('name="note"') == page.count('<form class="act"') > 1
    answer = await browser.post("/api/queue/1", data=fields)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/queue?status=pending")
    (event,) = await rows(database, "SELECT kind, who, detail->>'note' AS note FROM events")
    assert event == {"kind": "job.cancelled", "who": "Anna", "note": "a typo"}


async def test_a_form_that_is_not_carried_out_leads_back_to_its_page(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, "completed")
    csrf = csrf_on((await browser.get("/queue")).text)
    fields = {"action": "retry", "csrf": csrf, "back": "/queue?status=pending"}
    answer = await browser.post("/api/queue/1", data=fields)
    assert answer.status_code == 409
    assert '<a class="button" href="/queue?status=pending">Go back to /queue</a>' in answer.text
    answer = await browser.post("/api/queue/1", data={**fields, "back": "https://elsewhere.example"})
    assert "elsewhere" not in answer.text


@pytest.mark.parametrize("csrf", [None, "", "0" * 64, "é"])
@pytest.mark.parametrize("address", ["/api/queue/1", "/api/pools/vector/pause", "/logout"])
async def test_a_form_of_another_site_is_refused(
    browser: httpx.AsyncClient, database: Database, seed: Seed, address: str, csrf: str | None
) -> None:
    await seed.job(1)
    fields = {"action": "cancel"} if "queue" in address else {"note": "for nothing"}
    answer = await browser.post(address, data=fields | ({"csrf": csrf} if csrf is not None else {}))
    assert answer.status_code == 403
    assert "text/html" in answer.headers["Content-Type"]
    assert "Set-Cookie" not in answer.headers
    assert await rows(database, "SELECT * FROM events") == []


async def test_a_script_of_ours_may_send_json_with_the_csrf_header(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1)
    assert (await browser.delete("/api/queue/1")).status_code == 403
    headers = {"X-CSRF-Token": csrf_on((await browser.get("/queue")).text)}
    assert (await browser.delete("/api/queue/1", headers=headers)).status_code == 200


async def test_the_csrf_token_of_one_session_does_not_fit_another(
    app: Starlette, browser: httpx.AsyncClient, clock: ManualClock, seed: Seed
) -> None:
    await seed.job(1)
    stolen = csrf_on((await browser.get("/queue")).text)
    async with a_client(app) as other:
        await clock.advance(timedelta(seconds=1))
        await other.post("/login", data={"token": TOKEN, "name": "Bert"})
        answer = await other.post("/api/queue/1", data={"action": "cancel", "csrf": stolen})
        assert answer.status_code == 403


async def test_a_session_ends_after_its_time(browser: httpx.AsyncClient, clock: ManualClock) -> None:
    assert "Signed in as Anna" in (await browser.get("/")).text
    await clock.advance(SESSION_LENGTH - timedelta(seconds=1))
    assert "Signed in as Anna" in (await browser.get("/")).text
    await clock.advance(timedelta(seconds=1))
    assert "Signed in" not in (await browser.get("/")).text


async def test_another_token_ends_every_session(
    browser: httpx.AsyncClient, database: Database, clock: ManualClock
) -> None:
    value = browser.cookies["switchboard_session"]
    async with a_client(an_app(database, clock, token="another")) as client:
        client.cookies.set("switchboard_session", value)
        assert "Signed in" not in (await client.get("/")).text


async def test_a_changed_cookie_is_no_session(
    stranger: httpx.AsyncClient, browser: httpx.AsyncClient
) -> None:
    value = browser.cookies["switchboard_session"]
    said, end, proof = value.split(".")
    forged = [
        f"{said}.{int(end) + 1}.{proof}",
        f"QmVydA.{end}.{proof}",
        f"{said}.{end}.{'0' * 64}",
        f"{said}.{end}.",
        f"{said}.{end}",
        "..",
        "",
        TOKEN,
        "x" * 5_000,
    ]
    for one in forged:
        answer = await stranger.get("/", headers={"Cookie": f"switchboard_session={one}"})
        assert "Signed in" not in answer.text
        assert answer.status_code == 200


async def test_signing_out_drops_the_cookie(browser: httpx.AsyncClient) -> None:
    csrf = csrf_on((await browser.get("/")).text)
    answer = await browser.post("/logout", data={"csrf": csrf})
    assert answer.status_code == 303
    assert "switchboard_session" not in browser.cookies
    assert "Signed in" not in (await browser.get("/")).text


async def test_a_name_shows_as_text(stranger: httpx.AsyncClient) -> None:
    await stranger.post("/login", data={"token": TOKEN, "name": "<script>alert(1)</script>" + "é" * 80})
    page = (await stranger.get("/")).text
    assert "Signed in as &lt;script&gt;" in page
    assert "<script>alert" not in page


async def test_the_pages_keep_their_strict_policy_when_signed_in(
    browser: httpx.AsyncClient, stranger: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1)
    await seed.board("node-1")
    for client in (browser, stranger):
        for address in ("/queue", "/jobs/1", "/boards", "/login"):
            answer = await client.get(address)
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "style=" not in answer.text
            assert not re.search(r"\son[a-z]+=|<script(?! src=)", answer.text)


async def test_whoever_is_not_signed_in_gets_the_exact_command(
    stranger: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, attempts=1)
    await seed.board("node-1")
    queue, job, boards = [(await stranger.get(each)).text for each in ("/queue", "/jobs/1", "/boards")]
    bearer = "curl -X {} -H &#34;Authorization: Bearer $SWITCHBOARD_ADMIN_TOKEN&#34;"
    for page in (queue, job):
        command = f"""{bearer.format("DELETE")} -d '{{"note": "why"}}' {SERVER}/api/queue/1</code>"""
        assert command.replace('"', "&#34;") in page.replace('"', "&#34;")
        assert "action" in page
    assert f"{SERVER}/api/pools/scw-em-rv1/pause" in queue
    assert f"{SERVER}/api/entities/example-org/pause" in queue
    assert f"{SERVER}/api/boards/node-1/drain" in boards
    for page in (queue, job, boards):
        assert "csrf" not in page
        assert TOKEN not in page


async def test_the_token_is_in_no_log_line(
    app: Starlette, seed: Seed, capsys: pytest.CaptureFixture[str]
) -> None:
    await seed.job(1)
    async with a_client(app) as client:
        await client.post("/login", data={"token": TOKEN + "x"})
        await client.post("/login", data={"token": TOKEN})
        session = client.cookies["switchboard_session"]
        await client.get(f"/login?token={TOKEN}")
        await client.delete("/api/queue/1", headers={"Authorization": f"Bearer {TOKEN}"})
        await client.delete("/api/queue/1", headers={"Authorization": f"Bearer {TOKEN}wrong"})
    printed = capsys.readouterr()
    said = printed.out + printed.err
    assert "sign_in.refused" in said
    assert "sign_in.done" in said
    assert TOKEN not in said
    assert session not in said


@pytest.mark.parametrize("by", ["form", "bearer"])
async def test_the_right_token_is_taken_however_many_wrong_ones_come_from_the_same_address(
    stranger: httpx.AsyncClient, seed: Seed, by: str
) -> None:
    await seed.job(1, attempts=1)

    async def attempt(token: str) -> int:
        if by == "form":
            return (await stranger.post("/login", data={"token": token})).status_code
        headers = {"Authorization": f"Bearer {token}"}
        return (await stranger.patch("/api/queue/1", json={"action": "retry"}, headers=headers)).status_code

    right = 303 if by == "form" else 200
    for _ in range(20):
        assert await attempt("guessed") == 403
    assert await attempt(TOKEN) == right
    assert await attempt("guessed") == 403
    assert await attempt(TOKEN) == right


async def test_what_somebody_who_is_signed_in_reads_stays_in_no_cache(
    stranger: httpx.AsyncClient, browser: httpx.AsyncClient, admin: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1)
    for path in ("/queue", "/jobs/1", "/queue.json", "/boards"):
        assert (await browser.get(path)).headers["Cache-Control"] == "no-store"
        assert (await admin.get(path)).headers["Cache-Control"] == "no-store"
        assert (await stranger.get(path)).headers["Cache-Control"] == "no-cache"
