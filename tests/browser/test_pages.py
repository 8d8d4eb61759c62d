"""What needs rows that stand still: zones, pointers, keys, a lost server, and what the demo never shows."""

import re
from datetime import timedelta

import pytest
from playwright.async_api import Browser, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE, Window, a_window
from tests.browser.fleet import FAILED_WORKER, IGNORED, RUNNING, seed_fleet
from tests.clocks import EPOCH as NOW
from tests.integration.web_pages.seeding import Seed, ago


async def test_an_ignored_job_says_why_and_which_labels_are_served(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open(f"/jobs/{IGNORED}")
    await expect(window.page.locator(".panel")).to_contain_text("Your labels [riscv] match no pool.")
    await expect(window.page.locator("main")).to_contain_text("runs-on: [ubuntu-24.04-riscv]")


async def test_the_boards_page_names_what_does_not_fit_together(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open("/boards")
    main = window.page.locator("main")
    await expect(main).to_contain_text("Pool vector has no board")
    await expect(main).to_contain_text("no pool uses it")
    await expect(main.get_by_role("row", name=re.compile("scw-em-rv1-4"))).to_contain_text("1 of 1")


async def test_what_opens_a_command_looks_as_if_it_opens_and_not_as_if_it_ran(
    window: Window, seed: Seed
) -> None:
    await seed_fleet(seed)
    await window.open("/boards")
    drain = window.page.locator("summary", has_text="Drain").first
    after = "summary => getComputedStyle(summary, '::after').content"
    assert (await drain.evaluate(after)).strip('" ') == "▾"
    await drain.click()
    assert (await drain.evaluate(after)).strip('" ') == "▴"
    await expect(window.page.get_by_text("/drain").first).to_be_visible()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_names_of_boards_labels_and_ids_of_jobs_are_shown_whole(
    browser: Browser, base: str, seed: Seed, viewport: ViewportSize
) -> None:
    for number, state in enumerate(
        ("promised", "busy", "held", "unreachable", "no_resource", "not_ready"), 1
    ):
        await seed.board(f"scw-em-rv1-{number}", state, free=0)
    await seed.job(61234567890, "running", runner_name="rise-riscv-runner-abcdefghi", started_at=NOW)
    await seed.worker("rise-riscv-runner-abcdefghi", node="scw-em-rv1-1")
    async with a_window(browser, base, viewport) as window:
        await window.open("/")
        cut = (
            "tiles => tiles.filter(tile => tile.scrollWidth > tile.clientWidth).map(tile => tile.textContent)"
        )
        assert await window.page.locator(".tile *").evaluate_all(cut) == []
        await window.open("/workers")
        job = window.page.get_by_role("link", name="#61234567890")
        assert await job.evaluate("link => link.getClientRects().length") == 1
        await window.open("/jobs/61234567890")
        assert await window.page.locator(".label").evaluate_all(cut) == []


async def test_opened_log_lines_stay_open_over_a_live_update(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open("/workers")
    log = window.page.locator("details.log").first
    await log.locator("summary").click()
    await seed.worker("rise-riscv-runner-later0001", "pending")
    await expect(window.page.get_by_text("rise-riscv-runner-later0001")).to_be_visible(timeout=30_000)
    await expect(log.locator("pre")).to_be_visible()


async def test_rows_that_leave_or_come_above_take_no_focus_from_those_below(
    window: Window, seed: Seed
) -> None:
    for job_id in (1, 2, 3, 4, 5):
        await seed.job(job_id, created_at=ago(minutes=30 - job_id))
    await window.open("/jobs")
    rows = window.page.locator("tbody tr")
    link = window.page.get_by_role("link", name="build 3", exact=True)
    await link.focus()
    await seed.run("UPDATE jobs SET status = 'completed', conclusion = 'success' WHERE job_id IN (1, 4)")
    await expect(rows.first).to_contain_text("#2", timeout=30_000)
    await expect(link).to_be_focused()
    await seed.job(6, created_at=ago(hours=9))
    await expect(rows.first).to_contain_text("#6", timeout=30_000)
    await expect(link).to_be_focused()
    shown = [await rows.nth(number).get_attribute("data-key") for number in range(6)]
    assert shown == ["6", "2", "3", "5", "4", "1"]


async def test_what_appears_above_and_goes_again_leaves_the_rest_of_a_page_as_it_is(
    window: Window, seed: Seed
) -> None:
    page, info = window.page, {"log_tail": "\n".join(["a line"] * 9)}
    await seed.worker(
        FAILED_WORKER, "failed", failure_reason="pod_failed", failure_info=info, completed_at=NOW
    )
    for node, board in (("node-1", "scw-em-rv1"), ("node-2", "bpi-f3")):
        await seed.board(node, board=board)
    await window.open("/")
    log = page.locator("details.log").first
    await log.locator("summary").click()
    await log.locator("summary").focus()
    await seed.hold("pool", "vector")
    await expect(page.get_by_text("Needs a look")).to_be_visible(timeout=30_000)
    await expect(log.locator("summary")).to_be_focused()
    await expect(log.locator("pre")).to_be_visible()
    await seed.run("DELETE FROM holds")
    await expect(page.get_by_text("Needs a look")).to_be_hidden(timeout=30_000)
    await expect(log.locator("summary")).to_be_focused()
    await expect(log.locator("pre")).to_be_visible()


async def test_a_list_whose_reasons_go_keeps_its_rows(window: Window, seed: Seed) -> None:
    await seed.job(1, skip_reason="no_free_slots", skip_since=ago(minutes=3))
    await window.open("/jobs")
    link = window.page.get_by_role("link", name="build 1", exact=True)
    await link.focus()
    await seed.run(
        "UPDATE jobs SET skip_reason = NULL, skip_since = NULL, status = 'running', started_at = now()"
    )
    await expect(window.page.locator(".once")).to_have_count(0, timeout=30_000)
    await expect(link).to_be_focused()


async def test_the_search_field_is_one_key_away_and_takes_a_pasted_address(
    window: Window, seed: Seed
) -> None:
    await seed_fleet(seed)
    await window.open("/boards")
    await window.page.keyboard.press("/")
    await window.page.keyboard.insert_text(f"https://github.com/o/r/actions/runs/77/job/{RUNNING}")
    await window.page.keyboard.press("Enter")
    await expect(window.page).to_have_url(re.compile(f"/jobs/{RUNNING}$"))


async def test_times_are_in_the_readers_zone_with_utc_on_hover(
    browser: Browser, base: str, seed: Seed
) -> None:
    await seed_fleet(seed)
    async with a_window(browser, base, zone="Asia/Kolkata") as window:
        await window.open(f"/jobs/{RUNNING}")
        started = window.page.locator(".stages li", has_text="Started").locator("time")
        await expect(started).to_have_text("17:28:00")
        await expect(started).to_have_attribute("title", "2026-03-01 11:58:00 UTC")


async def test_what_was_yesterday_keeps_its_seconds_where_one_thing_follows_another(
    browser: Browser, base: str, seed: Seed
) -> None:
    at = NOW - timedelta(hours=12, seconds=15)
    await seed.job(1, created_at=at)
    await seed.event("workflow_job.queued", outcome="job_stored", job_id=1, at=at)
    async with a_window(browser, base) as window:
        await window.open("/jobs/1")
        for place in (".stages time", ".timeline time"):
            await expect(window.page.locator(place).first).to_have_text("2026-02-28 23:59:45")
        await window.open("/jobs")
        await expect(window.page.locator("tbody time")).to_have_text("2026-02-28 23:59")


async def test_a_chart_tells_its_figures_by_pointer_and_by_arrow_keys(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open("/")
    chart = window.page.locator("[data-key=chart-queue]")
    await chart.locator(".plot").focus()
    await window.page.keyboard.press("ArrowLeft")
    await expect(chart.locator(".tip")).to_contain_text("scw-em-rv1")
    await chart.locator(".plot").hover(position={"x": 40, "y": 40})
    await expect(chart.locator(".tip")).to_be_visible()


async def test_the_keyboard_skips_to_the_content(window: Window, seed: Seed) -> None:
    await window.open("/jobs")
    await window.page.keyboard.press("Tab")
    await expect(window.page.get_by_role("link", name="Skip to content")).to_be_focused()
    await expect(window.page.get_by_role("link", name="Skip to content")).to_have_css(
        "outline-style", "solid"
    )
    await window.page.keyboard.press("Enter")
    await expect(window.page).to_have_url(re.compile("#main$"))


async def test_a_lost_server_is_said_and_found_again(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open("/jobs")
    await window.page.route("**/jobs", lambda route: route.fulfill(status=503, body="away"))
    live = window.page.locator("[data-live]")
    await expect(live).to_have_text("No answer; trying again", timeout=30_000)
    await window.page.unroute("**/jobs")
    await expect(live).to_have_text("Live", timeout=60_000)
    window.faults.clear()  # the browser itself reports the 503
