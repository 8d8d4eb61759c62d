"""Charts, a board's day and a job's turn, from rows of a real database."""

import re
from datetime import timedelta
from typing import Any

import httpx
from starlette.applications import Starlette

from controller.domain.charts import Span
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.pages import PageStore
from tests.clocks import EPOCH as NOW
from tests.integration.web_pages.conftest import SETTINGS, ReportedLoop, page_app
from tests.integration.web_pages.seeding import Seed, ago


async def test_charts_put_what_was_measured_into_its_bucket(database: Database, seed: Seed) -> None:
    await seed.run("""
        INSERT INTO board_snapshots (pool, at, slots, free, busy, held, unreachable, queue_depth, oldest_wait_seconds)
        VALUES ('p', timestamptz '2026-03-01 12:00Z', 4, 1, 3, 0, 0, 2, 9),
            ('p', timestamptz '2026-03-01 11:50Z', 4, 4, 0, 0, 0, 0, 0),
            ('p', timestamptz '2026-03-01 11:46Z', 4, 0, 4, 0, 0, 6, 9),
            ('p', timestamptz '2026-02-01 00:00Z', 4, 4, 0, 0, 0, 0, 0)
    """)
    for job_id, wait in ((1, 10), (2, 20), (3, 30)):
        await seed.job(
            job_id, "running", created_at=ago(minutes=20, seconds=wait), started_at=ago(minutes=20)
        )
    await seed.job(4, "running", pool="q", created_at=ago(minutes=25), started_at=ago(minutes=20))
    await seed.worker("w", "failed", failure_reason="pod_failed", completed_at=ago(hours=3))
    charts = await PageStore(database).charts(Span.DAY, NOW)
    assert [(p.bucket, p.queue_depth, p.utilisation) for p in charts.pools] == [
        (94, 6, 0.5),
        (95, 2, 0.75),
    ]
    waits, other = sorted(charts.waits, key=lambda point: point.pool != "scw-em-rv1")
    assert (waits.bucket, waits.jobs, waits.median) == (93, 3, timedelta(seconds=20))
    assert waits.slow == timedelta(seconds=29)
    assert (other.pool, other.jobs, other.slow) == ("q", 1, timedelta(minutes=5))
    assert [(p.bucket, p.reason, p.workers) for p in charts.failures] == [(83, "pod_failed", 1)]


async def test_a_boards_day_counts_from_the_pods_start_to_its_end(database: Database, seed: Seed) -> None:
    await seed.worker(
        "w-1", "completed", node="n", pod_at=ago(minutes=60), pod_ended_at=ago(minutes=37, seconds=30)
    )
    await seed.worker("w-2", "running", node="n", pod_at=ago(minutes=5))
    await seed.worker(
        "w-3",
        "failed",
        node="n",
        pod_at=ago(hours=30),
        pod_ended_at=ago(hours=22),
        failure_reason="pod_failed",
    )
    await seed.worker(
        "w-4",
        "failed",
        node="n",
        pod_at=ago(hours=3),
        pod_ended_at=ago(hours=3),
        failure_reason="runner_idle",
    )
    await seed.worker("w-5", "completed", node="other", pod_at=ago(hours=3), pod_ended_at=ago(hours=2))
    day, idle = await PageStore(database).board_days({"n": 1, "idle": 1}, NOW)
    assert [round(share, 2) for share in day.busy[-6:]] == [0.0, 1.0, 0.5, 0.0, 0.33, 0.0]
    assert day.busy[0] == 1.0
    assert (day.ended, day.failed) == (3, 1)
    assert (idle.utilisation, idle.ended) == (0.0, 0)


async def seed_finished(seed: Seed, jobs: int) -> None:
    for number in range(jobs):
        name, began = f"done-{number}", ago(hours=1, minutes=number)
        ended = began + timedelta(minutes=10)
        await seed.worker(name, "completed", created_at=began, pod_ended_at=ended, completed_at=ended)
        started = began + timedelta(seconds=30)
        await seed.job(9000 + number, "completed", runner_name=name, started_at=started, completed_at=ended)


async def test_a_waiting_job_tells_its_place_and_with_twenty_finished_jobs_an_estimate(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.board("node-1", "busy")
    await seed.board("node-2", "free")
    await seed.board("node-3", "unreachable")
    for job_id in (1, 2, 3):
        await seed.job(job_id, "pending", skip_reason="no_free_slots", created_at=ago(minutes=30 - job_id))
    await seed.job(4, "pending", skip_reason="runner_on_its_way", created_at=ago(hours=2))
    await seed_finished(seed, 19)
    queue = (await browser.get("/jobs/3.json")).json()["queue"]
    assert (queue["position"], queue["boards"], queue["estimate_seconds"]) == (3, 2, None)
    await seed_finished_one_more(seed)
    queue = (await browser.get("/jobs/3.json")).json()["queue"]
    assert queue["estimate_seconds"] == 3 * 600 // 2 + 30
    assert "Starts in about" in (await browser.get("/jobs/3")).text
    assert (await browser.get("/jobs/4.json")).json()["queue"] is None


async def test_pools_that_share_boards_share_the_queue_for_them(
    database: Database, loop_status: ReportedLoop, seed: Seed
) -> None:
    await seed.board("node-1", "promised", free=0)
    for job_id, pool in ((1, "scw-em-rv1"), (2, "second"), (3, "vector"), (4, "second")):
        waits = {"skip_reason": "no_free_slots", "created_at": ago(minutes=30 - job_id)}
        await seed.job(job_id, "pending", pool=pool, **waits)
    await seed_finished(seed, 20)
    second = {
        "name": "second",
        "board": "scw-em-rv1",
        "labels": ["two"],
        "image": "ghcr.io/example/runner:prod",
    }
    shared: dict[str, Any] = {"pools": [*SETTINGS["pools"], second]}
    for job_id, place in ((1, 1), (2, 2), (4, 3)):
        queue = await queue_of(page_app(database, loop_status, shared), job_id)
        assert (queue["position"], queue["boards"], queue["finished_jobs"]) == (place, 1, 20)
    queue = await queue_of(page_app(database, loop_status, {**shared, "scheduling": "fair"}), 4)
    assert (queue["position"], queue["estimate_seconds"]) == (None, None)
    assert "take turns" in queue["note"]


async def queue_of(app: Starlette, job_id: int) -> dict[str, Any]:
    """The queue as the page and its twin tell it."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as browser:
        queue: dict[str, Any] = (await browser.get(f"/jobs/{job_id}.json")).json()["queue"]
        page = (await browser.get(f"/jobs/{job_id}")).text
    assert ("Starts in about" in page) is (queue["estimate_seconds"] is not None)
    assert queue["note"] is None or queue["note"] in page
    return queue


async def seed_finished_one_more(seed: Seed) -> None:
    began, ended = ago(hours=3), ago(hours=3) + timedelta(minutes=10)
    await seed.worker("more", "completed", created_at=began, pod_ended_at=ended, completed_at=ended)
    await seed.job(8999, "completed", runner_name="more", started_at=began + timedelta(seconds=30))


async def test_the_overview_has_charts_of_the_span_that_was_asked_for(browser: httpx.AsyncClient) -> None:
    for span, buckets in (("1h", 60), ("24h", 96), ("7d", 84)):
        seen = (await browser.get(f"/overview.json?span={span}")).json()
        assert [chart["name"] for chart in seen["charts"]] == ["queue", "waits", "utilisation", "failures"]
        assert all(len(one["values"]) == buckets for one in seen["charts"][0]["series"])
    refused = await browser.get("/?span=3w")
    assert (refused.status_code, "span must be one of 1h, 24h, 7d" in refused.text) == (400, True)


async def test_a_day_says_on_which_days_it_begins_and_ends(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.worker("w", "failed", failure_reason="pod_failed", completed_at=ago(minutes=3))
    for span, days in (("1h", 0), ("24h", 2), ("7d", 5)):
        page = (await browser.get(f"/?span={span}")).text
        axis = page.partition('<div class="axis"')[2].partition("</div>")[0]
        assert (axis.count('data-short="day"'), axis.count("data-short=")) == (days, 5)


async def test_reasons_have_colours_of_their_own(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.worker("w", "failed", failure_reason="pod_failed", completed_at=ago(minutes=3))
    await seed.job(1, "running", created_at=ago(minutes=9), started_at=ago(minutes=3))
    charts = (await browser.get("/")).text.partition('<div class="charts">')[2]
    waits, failures = (charts.partition(f'data-key="chart-{key}"')[2] for key in ("waits", "failures"))
    assert re.search(r'<i class="s\d"></i>scw-em-rv1', waits)
    assert re.search(r'<i class="f\d"></i>pod failed', failures)
    assert re.search(r'<path class="barred f\d"', failures)


async def test_usage_and_tiles_tell_the_slots_of_a_board_that_has_several(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, "pending")
    await seed.board("node-1", "busy", slots=4, free=1)
    await seed.board("node-2", "promised", free=0)
    (row,) = (await browser.get("/usage.json")).json()
    assert (row["boards"], row["boards_free"], row["slots"], row["slots_free"]) == (2, 0, 5, 1)
    assert "1 of 5 free" in (await browser.get("/usage")).text
    for page in ("/", "/boards"):
        shown = (await browser.get(page)).text
        assert "1 of 4 slots free" in shown
        assert "1 promised" in shown
    assert "1 of 2 usable boards busy" in (await browser.get("/")).text


async def test_usage_tells_the_cap_and_the_boards(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.job(1, "pending")
    await seed.board("node-1", "busy")
    await seed.board("node-2", "free")
    (row,) = (await browser.get("/usage.json")).json()
    assert (row["max_workers"], row["boards"], row["boards_free"]) == (20, 2, 1)
    assert "Organization · cap 20" in (await browser.get("/usage")).text


async def test_what_one_row_of_usage_has_to_spare_does_not_cancel_what_another_is_short_of(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    spare = "spare workers of one row do not serve another"
    for job_id in (1, 2, 3):
        await seed.job(job_id)
    await seed.job(4, labels=["riscv-rvv"], pool="vector")
    sums = '<td data-label="Deficit" class="num">4</td>'
    page = (await browser.get("/usage")).text
    assert (sums in page, spare in page) == (True, False)
    await seed.worker("w-1", labels=["other"], pool="vector")
    await seed.worker("w-2", labels=["other"], pool="vector")
    page = (await browser.get("/usage")).text
    assert (sums in page, spare in page) == (True, True)
