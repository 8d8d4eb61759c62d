"""Who sees what: private repositories for those who are signed in, everything only for them with `web.private`."""

from collections.abc import AsyncIterator

import httpx
import pytest

from controller.gateways.postgres.database import Database
from tests.integration.web_pages.conftest import TOKEN, ReportedLoop, page_app
from tests.integration.web_pages.seeding import Seed, ago
from tests.integration.web_pages.test_privacy_and_text import PAGES, SECRET, seed_private

SIGNED_IN = {"Authorization": f"Bearer {TOKEN}"}
ADDRESSES = [
    *PAGES,
    *(("/overview" if page == "/" else page) + ".json" for page in PAGES),
    "/search?q=example-org",
]


@pytest.fixture
async def closed(database: Database) -> AsyncIterator[httpx.AsyncClient]:
    """Asks for pages of an installation with `web.private`."""
    app = page_app(database, ReportedLoop(), {"web": {"private": True, "contact": "boards@example.org"}})
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as client:
        yield client


async def seed_telling(seed: Seed) -> None:
    everywhere = {"entity_name": SECRET, "repo": f"{SECRET}/repo", "labels": [SECRET]}
    await seed.job(1, "pending", skip_reason="held", **everywhere)
    await seed.job(2, "failed", **everywhere)
    await seed.job(3, "running", started_at=ago(minutes=1), runner_name="w-1", **everywhere)
    await seed.worker("w-1", "running", node=SECRET, **everywhere)
    await seed.board(SECRET, "busy", worker="w-1")
    await seed.event("workflow_job.queued", outcome="ignored_no_label", job_id=4, detail={"labels": [SECRET]})


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}]
)
async def test_private_pages_show_nothing_without_the_token(
    closed: httpx.AsyncClient, seed: Seed, address: str, headers: dict[str, str]
) -> None:
    await seed_telling(seed)
    answer = await closed.get(address, headers=headers)
    assert answer.status_code == 401
    assert SECRET not in answer.text
    assert "w-1" not in answer.text.replace("/workers/w-1", "").replace(
        "workers%2Fw-1", ""
    )  # the way back may name what was asked for
    assert "private" in answer.text


@pytest.mark.parametrize("address", ADDRESSES)
async def test_private_pages_are_shown_with_the_token(
    closed: httpx.AsyncClient, seed: Seed, address: str
) -> None:
    await seed_telling(seed)
    assert (await closed.get(address, headers=SIGNED_IN)).status_code in (200, 303)


async def test_probes_and_assets_of_private_installations_stay_open(closed: httpx.AsyncClient) -> None:
    for address in ("/health", "/ready", "/metrics", "/static/style.css"):
        assert (await closed.get(address)).status_code == 200


async def test_those_who_are_signed_in_see_private_repositories(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed_private(seed)
    for address in ("/jobs/1", "/workers/w-1", "/jobs/1.json", "/history"):
        assert SECRET not in (await browser.get(address)).text
        assert SECRET in (await browser.get(address, headers=SIGNED_IN)).text


@pytest.mark.parametrize("query", [f"repo=kim/{SECRET}", f"text={SECRET}", "run=31337"])
async def test_private_repositories_cannot_be_guessed_by_filters(
    browser: httpx.AsyncClient, seed: Seed, query: str
) -> None:
    await seed_private(seed)
    assert (await browser.get(f"/jobs.json?{query}")).json() == []
    found = (await browser.get(f"/jobs.json?{query}", headers=SIGNED_IN)).json()
    assert [job["job_id"] for job in found] == [1, 3, 2]


async def test_the_run_of_a_private_job_is_not_found_by_its_number(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed_private(seed)
    nothing = await browser.get("/search?q=4711")
    assert (await browser.get("/search?q=31337")).headers["location"] == nothing.headers["location"].replace(
        "4711", "31337"
    )
    found = await browser.get("/search?q=31337", headers=SIGNED_IN)
    assert found.headers["location"] == "/history?run=31337"


async def test_repository_label_and_text_narrow_the_history(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.job(1, "pending", repo="acme/Kernel", name="build all", labels=["riscv", "rvv"])
    await seed.job(2, "completed", repo="acme/kernel", name="lint 100%_of it", labels=["riscv"])
    await seed.job(
        3, "failed", repo="acme/tools", name="build docs", labels=["riscv"], entity_name="Kernel-Org"
    )
    for query, found in (
        ("repo=ACME/kernel", [1, 2]),
        ("label=RVV", [1]),
        ("label=rv", []),
        ("text=BUILD", [1, 3]),
        ("text=kernel", [1, 3, 2]),
        ("text=100%25_", [2]),
        ("text=_", [2]),
        ("text=build&status=failed&label=riscv", [3]),
    ):
        rows = (await browser.get(f"/jobs.json?{query}")).json()
        assert [job["job_id"] for job in rows] == found, query


async def test_workers_are_found_by_pool_and_board(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.worker("w-1", node="n-1", pool="scw-em-rv1")
    await seed.worker("w-2", node="n-2", pool="vector")
    for query, found in (("pool=vector", ["w-2"]), ("node=n-1", ["w-1"]), ("node=n-1&pool=vector", [])):
        rows = (await browser.get(f"/workers.json?{query}")).json()
        assert [worker["name"] for worker in rows] == found


async def test_who_did_something_is_told_to_those_who_are_signed_in(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, skip_reason="cancelled", mark="cancelled")
    await seed.event("job.cancelled", source="admin", job_id=1, who="Anna")
    await seed.hold("pool", "vector", who="Berta")
    await seed.hold("board", "node-1", "drain", who="Berta")
    await seed.board("node-1")
    for address, who in (("/jobs/1", "Anna"), ("/", "Berta"), ("/boards", "Berta")):
        twin = "/overview.json" if address == "/" else f"{address}.json"
        for asked in (address, twin):
            assert who not in (await browser.get(asked)).text
            assert who in (await browser.get(asked, headers=SIGNED_IN)).text


async def test_a_private_job_says_why_it_has_no_name_and_how_to_see_it(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed_private(seed)
    page = (await browser.get("/jobs/1")).text
    assert "Its repository is private" in page
    assert '<a class="inline" href="/login?next=/jobs/1" rel="nofollow">sign in</a>' in page
    assert "Its repository is private" not in (await browser.get("/jobs/1", headers=SIGNED_IN)).text
