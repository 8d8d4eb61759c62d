"""Text from outside is text in a real browser too: nothing runs, nothing breaks out of its place."""

import pytest
from playwright.async_api import Browser, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE, a_window
from tests.integration.web_pages.seeding import Seed
from tests.integration.web_pages.test_privacy_and_text import PAGES, seed_hostile


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_hostile_text_shows_as_text_and_never_runs(
    browser: Browser, base: str, seed: Seed, viewport: ViewportSize
) -> None:
    await seed_hostile(seed)
    async with a_window(browser, base, viewport) as window:
        for path in PAGES:
            await window.open(path)
            await expect(window.page.locator("main")).to_contain_text("<script>alert(1)</script>")
            await expect(window.page.locator("main")).to_contain_text("🦖")
            assert await window.page.locator("main script, main img").count() == 0
            wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert await window.page.evaluate(wide) <= 0, f"{path} is wider than the screen"
            high = "[...document.querySelectorAll('h1')].map(title => title.offsetHeight)"
            assert max(await window.page.evaluate(high)) < viewport["height"] / 2, path
        assert window.faults == []
