"""What every page is judged by: axe's rules for WCAG AA, and that nothing is wider than the screen."""

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}
NARROWER = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


async def judge(page: Page, path: str) -> None:
    """Fail with what is wrong and where."""
    found = await Axe().run(page, options=RULES)
    faults = [
        f"{fault['id']}: {fault['nodes'][0]['target']} {fault['nodes'][0].get('failureSummary', '')}"
        for fault in found.response["violations"]
    ]
    assert not faults, f"{path}: {faults}"
    assert await page.evaluate(NARROWER), f"{path} is wider than the screen"
