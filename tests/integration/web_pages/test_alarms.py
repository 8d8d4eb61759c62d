"""While nothing is decided every page says so, and none promises what will not come."""

from datetime import timedelta
from functools import partial

import httpx
import pytest

from controller.domain.explain import ABOUT_TO_START, UNJUDGED
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.leader import Leadership
from controller.gateways.postgres.pages import PageStore
from tests.clocks import EPOCH as NOW
from tests.integration.web_pages.conftest import ReportedLoop
from tests.integration.web_pages.seeding import Seed, ago
from tests.waiting import until

PAGES = ("/", "/usage", "/jobs", "/workers", "/boards", "/jobs/1")


@pytest.mark.parametrize("page", PAGES)
async def test_a_stuck_controller_is_told_on_every_page_with_since_when_and_what_to_do(
    browser: httpx.AsyncClient, seed: Seed, loop_status: ReportedLoop, page: str
) -> None:
    await seed.job(1)
    assert 'role="alert"' not in (await browser.get(page)).text
    loop_status.report(last_iteration_at=ago(hours=2))
    told = (await browser.get(page)).text
    assert "no iteration comes to its end" in told
    assert '<time datetime="2026-03-01T10:00:00Z">' in told
    assert '<a href="/ready">' in told
    assert "switchboard doctor" in told


async def test_an_iteration_that_ends_with_an_error_is_told(
    browser: httpx.AsyncClient, loop_status: ReportedLoop
) -> None:
    loop_status.report(last_error="StoreError: no")
    assert "ended with an error" in (await browser.get("/jobs")).text
    assert (await browser.get("/overview.json")).json()["controller"]["alarm"]["state"] == "failing"


async def gone(database: Database) -> bool:
    leader = await PageStore(database).leader()
    return leader is not None and not leader.present


async def test_one_that_stands_by_without_a_leader_does_not_say_that_all_is_well(
    browser: httpx.AsyncClient, database: Database, seed: Seed, loop_status: ReportedLoop
) -> None:
    leadership = Leadership(database, "another:1")
    assert await leadership.acquire(ago(minutes=3))
    loop_status.report(leads=False)
    controller = (await browser.get("/overview.json")).json()["controller"]
    assert (controller["leader"], controller["alarm"]) == ("another:1", None)
    assert ">another:1</span> leads" in (await browser.get("/")).text
    await leadership.drop()
    await until(partial(gone, database))
    await seed.run(
        "INSERT INTO board_snapshots (pool, at, slots, free, busy, held, unreachable, queue_depth,"
        " oldest_wait_seconds) VALUES ('p', '2026-03-01 11:58Z', 1, 1, 0, 0, 0, 0, 0)"
    )
    controller = (await browser.get("/overview.json")).json()["controller"]
    assert (controller["leader"], controller["leader_since"]) == (None, None)
    assert controller["alarm"]["state"] == "no leader"
    assert controller["alarm"]["since"] == "2026-03-01T11:58:00Z"
    page = (await browser.get("/")).text
    assert "another:1" not in page
    assert "<b>no leader</b> controller" in page
    assert "No controller leads" in (await browser.get("/jobs")).text


async def test_one_that_has_just_started_does_not_cry_for_a_leader(
    browser: httpx.AsyncClient, loop_status: ReportedLoop
) -> None:
    loop_status.report(leads=False, started_at=ago(seconds=10))
    assert 'role="alert"' not in (await browser.get("/")).text


async def test_a_leader_elsewhere_that_no_longer_looks_is_told(
    browser: httpx.AsyncClient, database: Database, loop_status: ReportedLoop
) -> None:
    leadership = Leadership(database, "another:1")
    assert await leadership.acquire(ago(minutes=6))
    loop_status.report(leads=False)
    assert "another:1, no longer looks at the boards" in (await browser.get("/workers")).text
    await leadership.drop()


@pytest.mark.parametrize(("waited", "said"), [(60, ABOUT_TO_START), (61, UNJUDGED)])
async def test_a_runner_is_promised_for_a_minute_only(
    browser: httpx.AsyncClient, seed: Seed, waited: int, said: tuple[str, str]
) -> None:
    await seed.job(1, created_at=ago(minutes=9), seen_at=NOW - timedelta(seconds=waited))
    for page in ("/", "/jobs", "/jobs/1"):
        text = (await browser.get(page)).text
        assert said[0] in text
        assert (ABOUT_TO_START[0] in text) is (said is ABOUT_TO_START)


async def test_the_overview_counts_apart_who_is_about_to_start_and_who_is_not_judged(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, seen_at=ago(seconds=3))
    await seed.job(2, seen_at=ago(hours=1), skip_since=ago(seconds=3))
    await seed.job(3, seen_at=ago(hours=1), pool="vector")
    await seed.job(4, seen_at=ago(hours=1), mark="cancelled")
    assert (await browser.get("/overview.json")).json()["reasons"] == [
        {"reason": None, "unjudged": False, "jobs": 2},
        {"reason": "cancelled", "unjudged": False, "jobs": 1},
        {"reason": None, "unjudged": True, "jobs": 1},
    ]
    page = (await browser.get("/")).text
    for said in ("2 × about to start", "1 × not judged yet", "1 × cancelled"):
        assert said in page


async def test_a_job_that_was_judged_a_moment_ago_is_about_to_start(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, created_at=ago(hours=9), skip_since=ago(seconds=3))
    assert ABOUT_TO_START[0] in (await browser.get("/jobs/1")).text
