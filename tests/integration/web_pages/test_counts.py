"""Numbers are of the whole, agree with each other and with the lists that they lead to."""

import re
from html import unescape

import httpx
import pytest

from controller.domain.reasons import HARMLESS, NO_BOARD_WORKS, Skip
from controller.gateways.postgres.database import Database
from tests.integration.web_pages.conftest import SETTINGS, ReportedLoop, page_app
from tests.integration.web_pages.seeding import Seed, ago

MANY_BOARDS = """
INSERT INTO boards (node, board, state, slots, heartbeat_at, updated_at)
SELECT 'n-' || lpad(n::text, 4, '0'), 'scw-em-rv1', 'busy', 1, timestamptz '2026-03-01 12:00Z', '2026-03-01 12:00Z'
FROM generate_series(1, 620) n
"""


async def test_counts_of_boards_are_of_all_of_them(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.run(MANY_BOARDS)
    overview = (await browser.get("/")).text
    assert "620 of 620 usable boards busy" in overview
    boards = (await browser.get("/boards")).text
    second = (await browser.get("/boards?page=2&per_page=50")).text
    for page in (overview, boards, second):
        assert ">620 busy</span>" in page
        assert "<b>Pool vector</b> has no board" in page
        assert "<b>Pool scw-em-rv1</b>" not in page


async def seed_failures(seed: Seed) -> None:
    for number, reason in enumerate(("pod_failed", "pod_missing", *HARMLESS)):
        await seed.worker(
            f"w-{number}",
            "failed",
            failure_reason=str(reason),
            created_at=ago(hours=13),  # before midnight, and failed after it
            completed_at=ago(hours=1),
            pod_ended_at=ago(hours=1),
            node="node-1",
        )
    await seed.worker("w-yesterday", "failed", failure_reason="pod_failed", completed_at=ago(hours=13))


async def test_the_number_of_failures_is_that_of_its_list_its_chart_and_its_board(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed_failures(seed)
    await seed.board("node-1")
    overview = (await browser.get("/overview.json?span=24h")).json()
    assert overview["counts"]["workers_failed_today"] == 2
    assert {worker["name"] for worker in overview["failures"]} == {"w-0", "w-1"}
    chart = next(chart for chart in overview["charts"] if chart["name"] == "failures")
    assert {one["name"] for one in chart["series"]} == {"pod failed", "pod missing"}
    page = (await browser.get("/")).text
    link = re.search(r'<a href="([^"]+)"><b>2</b> workers failed today \(UTC\)</a>', page)
    assert link
    listed = (await browser.get(link[1].replace("/workers?", "/workers.json?"))).json()
    assert {worker["name"] for worker in listed} == {"w-0", "w-1"}
    assert (await browser.get("/boards.json")).json()[0]["workers_failed_24h"] == 2


async def linked(browser: httpx.AsyncClient, text: str) -> list[int]:
    """The jobs that a link of the overview leads to."""
    link = re.search(rf'<a[^>]* href="([^"]+)">{re.escape(text)}', (await browser.get("/")).text)
    assert link
    listed = await browser.get(unescape(link[1]).replace("/jobs?", "/jobs.json?"))
    assert listed.status_code == 200
    return [job["job_id"] for job in listed.json()]


async def test_the_number_of_lost_jobs_leads_to_those_of_today(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, "failed", created_at=ago(hours=30), completed_at=ago(hours=12))
    await seed.job(2, "failed", created_at=ago(hours=30), completed_at=ago(hours=12, seconds=1))
    await seed.job(3, "failed", created_at=ago(hours=2), completed_at=ago(hours=1))
    await seed.job(4, "completed", completed_at=ago(hours=1))
    await seed.job(5)
    assert (await browser.get("/overview.json")).json()["counts"]["jobs_lost_today"] == 2
    assert await linked(browser, "2 jobs lost") == [3, 1]
    assert "lost since 2026-03-01 (UTC)" in (await browser.get("/jobs?failed_since=2026-03-01")).text


async def test_the_number_that_waits_for_boards_leads_to_the_jobs_of_their_pool(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.board("node-1", "busy")
    await seed.board("node-2", "busy", board="bpi-f3")
    await seed.job(1)
    await seed.job(2, pool="vector")
    await seed.job(3, pool="vector", created_at=ago(minutes=5))
    await seed.job(4, "running", pool="vector")
    assert await linked(browser, "1 job waiting") == [1]
    assert await linked(browser, "2 jobs waiting") == [2, 3]


async def test_pools_that_share_boards_say_apart_what_waits(database: Database, seed: Seed) -> None:
    shared = {"name": "second", "board": "scw-em-rv1", "labels": ["second"], "image": "i"}
    settings = {"pools": [*SETTINGS["pools"], shared]}
    transport = httpx.ASGITransport(page_app(database, ReportedLoop(), settings))
    await seed.board("node-1", "busy")
    await seed.job(1)
    await seed.job(2, pool="second")
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as browser:
        assert await linked(browser, "1 job waiting in scw-em-rv1") == [1]
        assert await linked(browser, "1 job waiting in second") == [2]


async def test_who_is_not_to_get_a_runner_does_not_wait_longest(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.board("node-1", "busy")
    await seed.job(1, mark="gave_up", skip_reason="gave_up", created_at=ago(days=5))
    await seed.job(2, mark="cancelled", skip_reason="cancelled", created_at=ago(days=4))
    await seed.job(3, skip_reason="no_free_slots", created_at=ago(minutes=7))
    assert (await browser.get("/overview.json")).json()["counts"]["oldest_wait_seconds"] == 420
    page = (await browser.get("/")).text
    assert "oldest for 7m" in page
    assert "3 jobs waiting, oldest for 7m" in page


@pytest.mark.parametrize(("before", "lately", "alarmed"), [(0, 5, False), (0, 6, True), (3, 6, False)])
async def test_failures_that_rise_are_an_alarm(
    browser: httpx.AsyncClient, seed: Seed, before: int, lately: int, alarmed: bool
) -> None:
    for number in range(before + lately):
        at = ago(minutes=5 if number < lately else 45)
        await seed.worker(f"w-{number}", "failed", failure_reason="pod_failed", completed_at=at)
    for number in range(20):
        await seed.worker(f"i-{number}", "failed", failure_reason="runner_idle", completed_at=ago(minutes=1))
    assert ('<li class="alarm"><a href="/workers?failed_since=' in (await browser.get("/")).text) is alarmed


@pytest.mark.parametrize(
    ("boards", "states", "helpless"),
    [(0, {}, True), (2, {"unreachable": 2}, True), (2, {"busy": 1, "held": 1}, False)],
)
async def test_nobody_is_told_to_wait_for_boards_that_do_not_work(
    browser: httpx.AsyncClient, seed: Seed, boards: int, states: dict[str, int], helpless: bool
) -> None:
    detail = {"boards": boards, "states": states}
    await seed.job(1, skip_reason=Skip.NO_FREE_SLOTS.value, skip_detail=detail)
    story = (await browser.get("/jobs/1.json")).json()
    for said in (story["explanation"], story["job"]["reason"]):
        assert (said["next_step"] == NO_BOARD_WORKS.next_step) is helpless
    assert (NO_BOARD_WORKS.sentence in (await browser.get("/jobs/1")).text) is helpless
