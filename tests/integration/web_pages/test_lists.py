"""Lists: their order, their slices and links, their filters, and what is refused."""

from html import unescape
from typing import Any

import httpx
import pytest

from tests.integration.web_pages.seeding import LABELS, Seed, ago

LISTS = ("/usage.json", "/history.json", "/jobs.json", "/workers.json", "/boards.json")


async def ids(browser: httpx.AsyncClient, address: str) -> list[int]:
    answer = await browser.get(address)
    assert answer.status_code == 200, answer.text
    return [row["job_id"] for row in answer.json()]


async def seed_every_status(seed: Seed) -> None:
    await seed.job(1, "completed", created_at=ago(hours=9), conclusion="success")
    await seed.job(2, "completed", created_at=ago(hours=8), conclusion="failure")
    await seed.job(3, "failed", created_at=ago(hours=7))
    await seed.job(4, "failed", created_at=ago(hours=6))
    await seed.job(5, "running", created_at=ago(hours=5))
    await seed.job(6, "running", created_at=ago(hours=4))
    await seed.job(7, "pending", created_at=ago(hours=3))
    await seed.job(8, "pending", created_at=ago(hours=2))


async def test_history_shows_pending_oldest_first_then_running_failed_and_completed(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed_every_status(seed)
    assert await ids(browser, "/history.json") == [7, 8, 6, 5, 4, 3, 2, 1]
    assert await ids(browser, "/jobs.json") == [7, 8, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
async def test_slices_of_any_size_put_together_are_the_whole_history(
    browser: httpx.AsyncClient, seed: Seed, size: int
) -> None:
    await seed_every_status(seed)
    seen: list[int] = []
    address: str | None = f"/history.json?per_page={size}"
    while address is not None:
        answer = await browser.get(address)
        seen += [row["job_id"] for row in answer.json()]
        address = answer.links.get("next", {}).get("url")
    assert seen == [7, 8, 6, 5, 4, 3, 2, 1]


async def test_links_are_github_style_and_keep_the_filters(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed_every_status(seed)
    answer = await browser.get("/history.json?per_page=2&page=2&start=-1d")
    assert {name: link["url"] for name, link in answer.links.items()} == {
        "first": "http://switchboard.test/history.json?per_page=2&start=-1d&page=1",
        "prev": "http://switchboard.test/history.json?per_page=2&start=-1d&page=1",
        "next": "http://switchboard.test/history.json?per_page=2&start=-1d&page=3",
    }
    assert "Link" not in (await browser.get("/history.json")).headers


async def test_no_next_link_leads_beyond_what_may_be_asked(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.run("""
        INSERT INTO jobs (job_id, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, run_id,
            status, heard_at, poll_at, created_at, seen_at, updated_at)
        SELECT n, 1, 'o', 'Organization', 'o/r', '1', 1, '{x}', 1, 'completed', t, t, t, t, t
        FROM generate_series(1, 100200) n, LATERAL (SELECT timestamptz '2026-01-01' + n * interval '1 s' AS t) at
    """)
    last = await browser.get("/history.json?page=1000")
    assert len(last.json()) == 100
    assert "next" not in last.links
    assert "prev" in last.links
    assert (await browser.get("/history.json?page=1001")).status_code == 400


async def test_filters_narrow_the_history(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.job(1, "completed", entity_id=7, entity_name="Alice", run_id=3)
    await seed.job(2, "pending", entity_id=8, entity_name="bob", run_id=3)
    await seed.job(3, "running", entity_id=8, entity_name="bob", run_id=4)
    assert await ids(browser, "/history.json?entity=alice") == [1]
    assert await ids(browser, "/history.json?entity=8") == [2, 3]
    assert await ids(browser, "/history.json?entity=nobody") == []
    assert await ids(browser, "/history.json?status=running") == [3]
    assert await ids(browser, "/history.json?status=running,completed") == [3, 1]
    assert await ids(browser, "/history.json?run=3") == [2, 1]
    await seed.job(4, "failed", pool="vector", completed_at=ago(hours=13))
    assert await ids(browser, "/history.json?pool=vector") == [4]
    assert await ids(browser, "/history.json?pool=vector&status=running") == []
    assert await ids(browser, "/history.json?failed_since=2026-02-28") == [4]
    assert await ids(browser, "/history.json?failed_since=-0d") == []
    assert await ids(browser, "/history.json?failed_since=-9d&status=running") == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("start=2026-02-28", [3, 2]),
        ("end=2026-02-28", [2, 1]),
        ("start=2026-02-28&end=2026-02-28", [2]),
        ("start=-1d", [3, 2]),
        ("start=-2d&end=-2d", [1]),
        ("start=-0d", [3]),
    ],
)
async def test_days_are_whole_in_utc_and_the_end_is_included(
    browser: httpx.AsyncClient, seed: Seed, query: str, found: list[int]
) -> None:
    await seed.job(1, "completed", created_at=ago(hours=36, seconds=1))  # the last second of 27 February
    await seed.job(2, "completed", created_at=ago(hours=12, seconds=1))  # the last second of the 28th
    await seed.job(3, "completed", created_at=ago(hours=12))  # the first of 1 March
    assert await ids(browser, f"/history.json?{query}") == found


@pytest.mark.parametrize("address", LISTS)
@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=one", "page"),
        ("page=99999999999999999999", "page"),
        ("per_page=101", "per_page"),
        ("per_page=1e9", "per_page"),
        ("per_page=0", "per_page"),
        ("page=1001&per_page=100", "100000"),
        ("start=yesterday", "start"),
        ("start=2026-02-30", "2026-02-30"),
        ("end=-99999d", "end"),
        ("end=0001-01-01", "end"),
        ("start=2026-03-02&end=2026-03-01", "after"),
        ("stauts=failed", "no parameter 'stauts' here; there are "),
    ],
)
async def test_a_bad_value_gets_400_and_a_sentence(
    browser: httpx.AsyncClient, address: str, query: str, word: str
) -> None:
    answer = await browser.get(f"{address}?{query}")
    assert answer.status_code == 400
    assert word in answer.json()["message"]
    assert answer.json()["message"].endswith(".")
    page = await browser.get(f"{address.removesuffix('.json')}?{query}")
    assert page.status_code == 400
    assert page.headers["content-type"].startswith("text/html")
    assert answer.json()["message"] in unescape(page.text)


@pytest.mark.parametrize("address", ["/overview", "/jobs/1", "/workers/w-1"])
async def test_an_unknown_parameter_is_refused_on_every_page(
    browser: httpx.AsyncClient, seed: Seed, address: str
) -> None:
    await seed.job(1, "pending")
    await seed.worker("w-1", "pending")
    assert (await browser.get(address)).status_code == 200
    page, twin = await browser.get(f"{address}?full=1"), await browser.get(f"{address}.json?full=1")
    assert (page.status_code, twin.status_code) == (400, 400)
    assert twin.json()["message"].startswith("There is no parameter 'full' here")
    assert twin.json()["message"] in unescape(page.text)


@pytest.mark.parametrize("query", ["status=done", "run=x", "entity=%00", "pool=%00", "failed_since=x"])
async def test_a_bad_filter_gets_400(browser: httpx.AsyncClient, query: str) -> None:
    assert (await browser.get(f"/history.json?{query}")).status_code == 400


async def test_usage_groups_by_entity_and_labels(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.job(1, "pending", created_at=ago(minutes=30))
    await seed.job(2, "pending", created_at=ago(minutes=20), repo="example-org/other")
    await seed.job(3, "running")
    await seed.job(4, "completed")
    await seed.job(5, "pending", labels=["riscv-rvv"], pool="vector")
    await seed.worker("w-1", "running")
    await seed.worker("w-2", "failed")
    rows = (await browser.get("/usage.json")).json()
    both = {tuple(row["labels"]): row for row in rows}
    assert len(rows) == 2
    wanted = {
        "demand": 3,
        "supply": 1,
        "deficit": 2,
        "jobs_pending": 2,
        "jobs_running": 1,
        "workers_pending": 0,
        "workers_running": 1,
        "pools": ["scw-em-rv1"],
        "oldest_wait_seconds": 1800,
        "entity_name": "example-org",
    }
    row = both[tuple(LABELS)]
    assert {name: row[name] for name in wanted} == wanted
    assert both[("riscv-rvv",)]["deficit"] == 1


async def test_usage_of_personal_accounts_is_by_repository(browser: httpx.AsyncClient, seed: Seed) -> None:
    person: dict[str, Any] = {"entity_id": 9, "entity_name": "kim", "entity_type": "User"}
    await seed.job(1, "pending", repo="kim/one", **person)
    await seed.job(2, "pending", repo="kim/two", **person)
    await seed.worker("w-1", "running", repo="kim/two", **person)
    rows = (await browser.get("/usage.json")).json()
    assert [(row["repo"], row["deficit"]) for row in rows] == [("kim/one", 1), ("kim/two", 0)]


async def test_workers_come_newest_first_with_their_failure_info(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.worker("w-old", "completed", created_at=ago(hours=2))
    log = "\n".join(f"line {number}" for number in range(1000))
    info = {"containers": [{"name": "runner", "exit_code": 7}], "log_tail": log}
    await seed.worker("w-new", "failed", failure_reason="runner_version_refused", failure_info=info)
    rows = (await browser.get("/workers.json")).json()
    assert [row["name"] for row in rows] == ["w-new", "w-old"]
    assert rows[0]["failure_info"]["containers"][0]["exit_code"] == 7
    assert "GitHub refuses this version of the runner" in rows[0]["failure"]["sentence"]
    assert rows[0]["failure_info"]["log_tail"].endswith("line 999")
    assert "line 0\n" not in rows[0]["failure_info"]["log_tail"]
    whole = (await browser.get("/workers/w-new.json")).json()
    assert whole["worker"]["failure_info"]["log_tail"] == log
    failed = (await browser.get("/workers.json?status=failed")).json()
    assert [row["name"] for row in failed] == ["w-new"]
