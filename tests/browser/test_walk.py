"""Every page in a real browser: nothing goes wrong in it, nothing leaves the server, everybody can read it."""

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser

from tests.browser.conftest import DESKTOP, PHONE, a_window
from tests.browser.fleet import PAGES, seed_fleet
from tests.integration.web_pages.seeding import Seed

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}
NARROWER = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.timeout(300)
async def test_every_page_is_sound_and_accessible(
    browser: Browser, base: str, seed: Seed, viewport: dict[str, int], scheme: str
) -> None:
    await seed_fleet(seed)
    width = PHONE if viewport == PHONE else DESKTOP
    async with a_window(browser, base, width, scheme) as window:
        for path in PAGES:
            await window.open(path)
            found = await Axe().run(window.page, options=RULES)
            faults = [
                f"{fault['id']}: {fault['nodes'][0]['target']} {fault['nodes'][0].get('failureSummary', '')}"
                for fault in found.response["violations"]
            ]
            assert faults == [], path
            assert await window.page.evaluate(NARROWER), f"{path} is wider than the screen"
        assert window.faults == []


async def test_an_empty_installation_is_sound_too(browser: Browser, base: str) -> None:
    async with a_window(browser, base, PHONE) as window:
        for path in ("/", "/usage", "/jobs", "/workers", "/boards"):
            await window.open(path)
            assert await window.page.locator(".empty").first.is_visible()
            assert (await Axe().run(window.page, options=RULES)).violations_count == 0
        assert window.faults == []
