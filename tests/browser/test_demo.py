"""The live demo, as it is started by newcomers, walked through page by page in a real browser."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from controller.web.rendering import NAVIGATION
from hack.demo import TOKEN, a_demo, ask, waiting
from tests.browser.conftest import DESKTOP, PHONE, Window, a_window
from tests.browser.judging import judge

SPEED = 10  # the demo's own default
SLOW = 120_000  # ms; the machine may be busy with other things
TRIES = 20
# One row is like another: shorter lists are judged sooner.
LISTS = (
    "/jobs?per_page=10",
    "/history?per_page=10&status=completed",
    "/workers?per_page=10",
    "/queue?per_page=10",
)
PAGES = ("/", "/?span=1h", "/?span=7d", "/usage", *LISTS, "/boards", "/schedules", "/login", "/nowhere")
NO_PAGES = {"/ready"}
LOG_END = "log => log.scrollHeight - log.scrollTop - log.clientHeight < 2"
SOMETHING_NEW = (
    "known => [...document.querySelectorAll('tbody tr')].some(row => !known.includes(row.dataset.key))"
)

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    """Where the demo is; a worker has failed in it already, and jobs wait."""
    with a_demo(SPEED) as base:
        yield base


async def one_of(demo: str, listing: str) -> dict[str, Any]:
    """The first row of a list."""
    rows = await asyncio.to_thread(ask, f"{demo}{listing}")
    found: dict[str, Any] = rows[0]
    return found


async def failed_worker(demo: str) -> dict[str, Any]:
    """A failed worker whose log everybody may read."""
    failed = await asyncio.to_thread(ask, f"{demo}/workers.json?status=failed")
    found: dict[str, Any] = next(row for row in failed if (row["failure_info"] or {}).get("log_tail"))
    return found


def shape(address: str) -> str:
    """The kind of page that an address leads to: `/jobs/7` and `/jobs/8` are one."""
    return re.sub(r"^/(jobs|workers)/.+", r"/\1/…", urlsplit(address).path)


async def linked(page: Page, base: str) -> set[str]:
    """The kinds of pages of ours that this one leads to."""
    found = await page.locator("a[href]").evaluate_all("links => links.map(link => link.href)")
    ours = {shape(address) for address in found if address.startswith(base)}
    return {path for path in ours if not path.endswith(".json")} - NO_PAGES


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_every_page_of_the_demo_is_sound_and_everybody_can_read_it(
    browser: Browser, demo: str, viewport: ViewportSize, scheme: str
) -> None:
    done = await one_of(demo, "/jobs.json?status=completed&per_page=1")
    failed = await failed_worker(demo)
    waits = await asyncio.to_thread(waiting, demo) or f"/jobs/{done['job_id']}"
    walked = (*PAGES, waits, f"/jobs/{done['job_id']}", f"/workers/{failed['name']}")
    leads_to: set[str] = set()
    async with a_window(browser, demo, viewport, scheme) as window:
        for path in walked:
            await window.open(path)
            await judge(window.page, path)
            leads_to |= await linked(window.page, demo)
            if path == "/nowhere":
                await expect(window.page.locator("main")).to_contain_text("search field")
                assert ["404" in fault for fault in window.faults] == [True]  # the browser's own word for it
                window.faults.clear()
            assert window.faults == [], path
    assert {address for address, _ in NAVIGATION} <= leads_to
    assert leads_to <= {shape(path) for path in walked}, "a page that nobody walked"


async def test_buttons_and_forms_of_those_who_are_signed_in_can_be_used_by_everybody(
    browser: Browser, demo: str
) -> None:
    async with a_window(browser, demo, PHONE) as window:
        await window.open("/login?next=/queue")
        await window.page.get_by_label("Admin token").fill(TOKEN)
        await window.page.get_by_label("Your name").fill("Anna")
        await window.page.locator("main").get_by_role("button", name="Sign in").click()
        await expect(window.page).to_have_url(re.compile("/queue$"))
        for path in ("/queue?per_page=5", "/boards", "/schedules"):
            await window.open(path)
            await expect(window.page.locator(".act button").first).to_be_visible()
            await judge(window.page, path)
        assert window.faults == []


async def test_what_happens_appears_by_itself_and_leaves_the_reader_alone(
    browser: Browser, demo: str
) -> None:
    async with a_window(browser, demo, {"width": 1280, "height": 400}) as window:
        page = window.page
        await window.open("/jobs?status=completed")
        known = await page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.dataset.key)")
        await page.evaluate("document.getElementById('main').marked = true")
        await page.get_by_label("Text").fill("half writ")
        await page.evaluate("window.scrollTo(0, 300)")
        await page.wait_for_function(SOMETHING_NEW, arg=known, timeout=SLOW)
        assert await page.evaluate("document.getElementById('main').marked"), "the page was not loaded anew"
        assert await page.evaluate("window.scrollY") >= 300, "rows above may only push it down"
        await expect(page.get_by_label("Text")).to_have_value("half writ")
        await expect(page.get_by_label("Text")).to_be_focused()
        assert window.faults == []


async def test_filters_narrow_the_list_and_paging_keeps_them(browser: Browser, demo: str) -> None:
    async with a_window(browser, demo) as window:
        page = window.page
        await window.open("/jobs?per_page=20")
        await page.get_by_label("Status").select_option("completed")
        await page.get_by_label("Repository").fill("Acme/Kernel")
        await page.get_by_role("button", name="Show").click()
        await expect(page).to_have_url(re.compile("status=completed"))
        rows = page.locator("tbody tr")
        names = await rows.locator(".sub").all_inner_texts()
        assert names
        assert all(name.startswith("acme/kernel ") for name in names)
        await page.get_by_role("link", name="Next").click()
        await expect(page.locator(".pager")).to_contain_text("Page 2")
        await expect(page).to_have_url(re.compile("status=completed"))
        assert await rows.locator(".sub").all_inner_texts() != names
        await page.get_by_role("link", name="First").click()
        await expect(page.locator(".pager")).to_contain_text("Page 1")
        await page.get_by_role("link", name="Clear").click()
        await expect(rows.locator(".chip.pending, .chip.running").first).to_be_visible(timeout=SLOW)
        assert window.faults == []


async def test_a_waiting_job_says_why_its_place_and_what_to_do(browser: Browser, demo: str) -> None:
    async with a_window(browser, demo) as window:
        said = await what_a_waiting_job_says(window, demo)
    assert "No board of this type is free." in said
    assert re.search(r"\d boards: \d ", said)
    assert "Wait for its turn; /boards shows" in said
    assert "Place in the queue" in said
    assert re.search(r"Starts in about\s+\d+", said), "the past has enough jobs for an estimate"
    assert "Has waited" in said


async def what_a_waiting_job_says(window: Window, demo: str) -> str:
    """The panel of a job that still waits for a board when its page is read; most start soon."""
    for _ in range(TRIES):
        path = await asyncio.to_thread(waiting, demo)
        if path is not None:
            await window.open(path)
            panels = await window.page.locator(".panel").all_inner_texts()
            if panels and "No board of this type" in panels[0]:
                return panels[0]
        await asyncio.sleep(0.5)
    raise AssertionError("no job waited for long enough")


async def test_a_failed_worker_says_what_happened_with_its_last_log_lines(
    browser: Browser, demo: str
) -> None:
    worker = await failed_worker(demo)
    info = worker["failure_info"]
    async with a_window(browser, demo) as window:
        await window.open(f"/workers/{worker['name']}")
        panel = window.page.locator(".panel")
        await expect(panel).to_contain_text(worker["failure"]["sentence"])
        await expect(panel.locator("pre")).to_contain_text(info["log_tail"].splitlines()[-1])
        await expect(panel).to_contain_text(info["events"][0]["reason"])
        assert await panel.locator("pre").evaluate(LOG_END), "the log opens at its end"
        assert window.faults == []


async def test_a_run_that_a_schedule_started_is_one_link_away(browser: Browser, demo: str) -> None:
    async with a_window(browser, demo) as window:
        await window.open("/login?next=/schedules")
        await window.page.get_by_label("Admin token").fill(TOKEN)
        await window.page.locator("main").get_by_role("button", name="Sign in").click()
        started = window.page.locator("tr[data-key^=occurrence-]", has_text="benchmarks").last
        await started.get_by_role("link", name="Jobs of its run").click(timeout=SLOW)
        await expect(window.page.locator("tbody tr")).to_have_count(3, timeout=SLOW)  # a webhook may be lost
        assert window.faults == []


async def test_a_finished_job_shows_its_way(browser: Browser, demo: str) -> None:
    ended = await asyncio.to_thread(ask, f"{demo}/jobs.json?status=completed")
    done = next(
        row for row in ended if row["conclusion"] == "success"
    )  # one that was cancelled may have had no runner
    async with a_window(browser, demo) as window:
        await window.open(f"/jobs/{done['job_id']}")
        names = await window.page.locator(".stages b").all_inner_texts()
        way = "Queued Seen Reserved JIT config Pod made Pod running Online Started Finished"
        assert " ".join(names) == way
        await expect(window.page.locator(".stages .open")).to_have_count(0)
        await expect(window.page.locator(".partnames")).to_contain_text("ran")
