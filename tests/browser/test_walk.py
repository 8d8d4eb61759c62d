"""What the demo never shows: boards in every state, lost and ignored jobs, an installation with nothing in it."""

import pytest
from playwright.async_api import Browser, ViewportSize

from tests.browser.conftest import DESKTOP, PHONE, a_window
from tests.browser.fleet import FAILED_WORKER, IGNORED, LOST, PRIVATE, seed_fleet
from tests.browser.judging import judge
from tests.integration.web_pages.seeding import Seed

RARE = (
    "/",
    "/boards",
    "/jobs?text=nothing-like-this",
    f"/jobs/{LOST}",
    f"/jobs/{IGNORED}",
    f"/jobs/{PRIVATE}",
)
HALF: ViewportSize = {"width": 905, "height": 900}
RUN_OVER = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"
EMPTY = ("/", "/usage", "/jobs", "/workers", "/boards")


@pytest.mark.parametrize(
    ("viewport", "scheme"), [(DESKTOP, "dark"), (PHONE, "light")], ids=["desktop", "phone"]
)
@pytest.mark.timeout(300)
async def test_rare_states_are_sound_and_everybody_can_read_them(
    browser: Browser, base: str, seed: Seed, viewport: ViewportSize, scheme: str
) -> None:
    await seed_fleet(seed)
    async with a_window(browser, base, viewport, scheme) as window:
        for path in RARE:
            await window.open(path)
            await judge(window.page, path)
        assert window.faults == []


@pytest.mark.timeout(300)
async def test_half_a_screen_is_as_wide_as_any_page(browser: Browser, base: str, seed: Seed) -> None:
    await seed_fleet(seed)
    async with a_window(browser, base, HALF) as window:
        for path in (*RARE, "/usage", "/workers", f"/workers/{FAILED_WORKER}"):
            await window.open(path)
            await judge(window.page, path)
            assert await window.page.locator("th").evaluate_all(RUN_OVER) == [], path
        assert window.faults == []


@pytest.mark.timeout(300)
async def test_an_empty_installation_says_on_every_page_what_to_do_next(browser: Browser, base: str) -> None:
    async with a_window(browser, base, PHONE) as window:
        for path in EMPTY:
            await window.open(path)
            assert await window.page.locator(".empty").first.is_visible()
            await judge(window.page, path)
        assert window.faults == []
