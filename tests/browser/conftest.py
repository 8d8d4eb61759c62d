"""Real Chromium before the pages: over a seeded database, served over HTTP. Whatever a page does wrong is collected."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from controller.gateways.postgres.database import Database
from hack.chromium import FLAGS, chromium
from tests.integration.web_pages.conftest import ReportedLoop, page_app
from tests.integration.web_pages.seeding import Seed
from tests.serving import serving

DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


@dataclass(slots=True)
class Window:
    """A page in the browser, the address it is served at, and all that went wrong in it."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        """Go to an address of ours; the page is ready when this returns."""
        await self.page.goto(f"{self.base}{path}")


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    """A browser that speaks to nobody by itself."""
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield launched
        await launched.close()


@pytest.fixture
def seed(database: Database) -> Seed:
    """Writes rows."""
    return Seed(database)


@pytest.fixture
async def base(database: Database) -> AsyncIterator[str]:
    """Where the pages are served."""
    async with serving(page_app(database, ReportedLoop())) as url:
        yield url


@asynccontextmanager
async def a_window(
    browser: Browser, base: str, viewport: ViewportSize = DESKTOP, scheme: str = "light", zone: str = "UTC"
) -> AsyncIterator[Window]:
    """A fresh window; console errors, exceptions and requests that leave the server are faults."""
    context = await browser.new_context(
        viewport=viewport,
        color_scheme="dark" if scheme == "dark" else "light",
        timezone_id=zone,
        reduced_motion="reduce",
    )
    page = await context.new_page()
    window = Window(page, base)
    ours = urlsplit(base).netloc

    def requested(url: str) -> None:
        if urlsplit(url).scheme != "data" and urlsplit(url).netloc != ours:
            window.faults.append(f"asked {url}")

    page.on("console", lambda said: window.faults.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: window.faults.append(str(error)))
    page.on("dialog", lambda dialog: window.faults.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: requested(request.url))
    try:
        yield window
    finally:
        await context.close()


@pytest.fixture
async def window(browser: Browser, base: str) -> AsyncIterator[Window]:
    """A desktop window; the test fails if anything went wrong in it."""
    async with a_window(browser, base) as opened:
        yield opened
        assert opened.faults == []
