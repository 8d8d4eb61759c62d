"""Text from outside is text in a real browser too: nothing runs, nothing breaks out of its place."""

from playwright.async_api import expect

from tests.browser.conftest import Window
from tests.integration.web_pages.seeding import Seed
from tests.integration.web_pages.test_privacy_and_text import PAGES, seed_hostile


async def test_hostile_text_shows_as_text_and_never_runs(window: Window, seed: Seed) -> None:
    await seed_hostile(seed)
    for path in PAGES:
        await window.open(path)
        await expect(window.page.locator("main")).to_contain_text("<script>alert(1)</script>")
        await expect(window.page.locator("main")).to_contain_text("🦖")
        assert await window.page.locator("main script, main img").count() == 0
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await window.page.evaluate(wide) <= 0, f"{path} is wider than the screen"
