"""What people do with the pages: look, filter, turn pages, search, and leave them open."""

import re

from playwright.async_api import Browser, expect

from tests.browser.conftest import Window, a_window
from tests.browser.fleet import DONE, FAILED_WORKER, IGNORED, PENDING, RUNNING, seed_fleet
from tests.integration.web_pages.seeding import Seed, ago


async def test_a_pending_job_shows_why_its_place_and_what_to_do(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open(f"/jobs/{PENDING}")
    panel = window.page.locator(".panel")
    await expect(panel).to_contain_text("All boards of this type are taken or unusable.")
    await expect(panel).to_contain_text("6 boards: 1 busy, 1 held, 1 unreachable.")
    await expect(panel).to_contain_text("Place in the queue")
    await expect(panel.locator(".next")).to_contain_text("Wait for a board")


async def test_a_failed_worker_shows_its_reason_exit_code_log_lines_and_events(
    window: Window, seed: Seed
) -> None:
    await seed_fleet(seed)
    await window.open(f"/workers/{FAILED_WORKER}")
    panel = window.page.locator(".panel")
    await expect(panel).to_contain_text("The runner's container ended with an error.")
    await expect(panel).to_contain_text("exit code 137 (OOMKilled)")
    await expect(panel.locator("pre")).to_contain_text("the runner's last words")
    await expect(panel).to_contain_text("Evicted")
    at_end = "log => log.scrollHeight - log.scrollTop - log.clientHeight < 2"
    assert await panel.locator("pre").evaluate(at_end), "the log opens at its end"


async def test_a_finished_job_shows_its_way_with_durations(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open(f"/jobs/{DONE}")
    names = await window.page.locator(".stages b").all_inner_texts()
    assert names == [
        "Queued",
        "Seen",
        "Reserved",
        "JIT config",
        "Pod made",
        "Pod running",
        "Online",
        "Started",
        "Finished",
    ]
    await expect(window.page.locator(".stages li", has_text="Finished")).to_contain_text("+10m")


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


async def test_live_updates_appear_and_leave_scroll_focus_input_and_open_details_alone(
    window: Window, seed: Seed
) -> None:
    await seed_fleet(seed)
    await window.page.set_viewport_size({"width": 1280, "height": 400})
    await window.open("/jobs")
    await window.page.evaluate("document.getElementById('main').marked = true")
    await window.page.locator("input[name=text]").fill("half writ")
    await window.page.evaluate("window.scrollTo(0, 120)")
    await seed.job(77, "pending", name="a job that came later", created_at=ago(seconds=5))
    added = window.page.get_by_role("link", name="a job that came later")
    await expect(added).to_be_attached(timeout=30_000)
    assert await window.page.evaluate("document.getElementById('main').marked"), (
        "the page was not loaded anew"
    )
    assert await window.page.evaluate("window.scrollY") == 120
    await expect(window.page.locator("input[name=text]")).to_have_value("half writ")
    await expect(window.page.locator("input[name=text]")).to_be_focused()


async def test_opened_log_lines_stay_open_over_a_live_update(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open("/workers")
    log = window.page.locator("details.log").first
    await log.locator("summary").click()
    await seed.worker("rise-riscv-runner-later0001", "pending")
    await expect(window.page.get_by_text("rise-riscv-runner-later0001")).to_be_visible(timeout=30_000)
    await expect(log.locator("pre")).to_be_visible()


async def test_filters_narrow_the_list_and_stay_in_the_address(window: Window, seed: Seed) -> None:
    await seed_fleet(seed)
    await window.open("/jobs")
    await window.page.get_by_label("Status").select_option("running")
    await window.page.get_by_role("button", name="Show").click()
    await expect(window.page.locator("tbody tr")).to_have_count(1)
    await expect(window.page.locator("tbody tr")).to_contain_text(f"#{RUNNING}")
    await expect(window.page).to_have_url(re.compile("status=running"))
    await window.page.get_by_role("link", name="Clear").click()
    await window.page.get_by_label("Repository").fill("Example-Org/LLVM")
    await window.page.get_by_label("Text").fill("BUILD 4")
    await window.page.get_by_role("button", name="Show").click()
    await expect(window.page.locator("tbody tr")).to_have_count(1)
    await expect(window.page.locator("tbody tr")).to_contain_text(f"#{DONE}")


async def test_paging_goes_through_the_list_and_keeps_the_filters(window: Window, seed: Seed) -> None:
    for number in range(1, 8):
        await seed.job(number, "completed", created_at=ago(minutes=number))
    await window.open("/jobs?per_page=3&status=completed")
    seen = []
    for _ in range(3):
        seen += await window.page.locator("tbody .name").all_inner_texts()
        following = window.page.get_by_role("link", name="Next")
        if await following.count():
            await following.click()
    assert seen == [f"build {number}" for number in range(1, 8)]
    await window.page.get_by_role("link", name="First").click()
    await expect(window.page.locator("tbody .name").first).to_have_text("build 1")


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
        await expect(started).to_have_text(re.compile(r"17:28"))
        await expect(started).to_have_attribute("title", "2026-03-01 11:58:00 UTC")


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
