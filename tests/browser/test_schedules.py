"""Schedules in a real browser: sign in, make one from a preset, read its times in two zones, run it, disable it."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright, expect

from controller.gateways.postgres.database import Database
from hack.chromium import FLAGS, chromium
from tests.clocks import ManualClock
from tests.integration.schedules.clockwork import a_file, rows
from tests.integration.schedules.served import TOKEN, an_app
from tests.serving import serving

READER = "America/New_York"


@pytest.fixture
async def page(database: Database) -> AsyncIterator[Page]:
    """A window of somebody in New York at the page of schedules; mistakes in the console fail the test."""
    app = an_app(database, ManualClock(), a_file([]))
    faults: list[str] = []
    async with serving(app) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        context = await browser.new_context(base_url=url, timezone_id=READER)
        window = await context.new_page()
        window.on("pageerror", lambda error: faults.append(str(error)))
        window.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        yield window
        await browser.close()
    assert faults == []


async def test_a_schedule_is_made_from_a_preset_read_run_and_disabled(page: Page, database: Database) -> None:
    await page.goto("/schedules")
    await expect(page.get_by_text("curl -X POST").first).to_be_visible()  # before signing in
    await page.goto("/login?next=/schedules")
    await page.locator("input[name=token]").fill(TOKEN)
    await page.locator("input[name=name]").fill("Anna")
    await page.locator("form:has(input[name=token]) button").click()
    await page.goto("/schedules")

    form = page.locator("form[action='/api/schedules']")
    await form.locator("input[name=name]").fill("weekly")
    await form.locator("select[name=preset]").select_option("weekly on Monday")
    await form.locator("input[name=timezone]").fill("Asia/Tokyo")
    await form.locator("select[name=action]").select_option("pause")
    await form.locator("input[name=with]").fill('{"pool": "rv1", "for": "2h"}')
    await form.get_by_role("button", name="Create").click()

    row = page.locator("tr[data-key=weekly]")
    times = row.locator("ol.times li")
    await expect(times).to_have_count(5)
    await expect(times.first).to_contain_text("Mon 2026-03-02 00:00 JST")
    await expect(times.first.locator("time")).to_have_text("10:00:00")  # in New York

    await row.get_by_role("button", name="Run now").click()
    occurrence = page.locator("tr[data-key^=occurrence-]")
    await expect(occurrence).to_contain_text("by hand")
    await expect(occurrence).to_contain_text("completed")
    await page.goto("/queue")
    await expect(page.locator("tr[data-key=pools-rv1]")).to_contain_text("set by the schedule weekly")

    await page.goto("/schedules")
    await row.get_by_role("button", name="Disable").click()
    await expect(row.locator(".chip")).to_have_text("disabled")
    await expect(row.get_by_role("button", name="Enable")).to_be_visible()
    assert await rows(database, "SELECT enabled FROM schedules") == [{"enabled": False}]
    kinds = await rows(
        database, "SELECT kind FROM events WHERE source = 'admin' AND who = 'Anna' ORDER BY id"
    )
    assert [row["kind"] for row in kinds] == ["schedule.created", "schedule.run", "schedule.disabled"]
