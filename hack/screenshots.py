"""Take the pictures of the README: start the demo, wait until there is something to see, and photograph it.

    make screenshots            into hack/screenshots/

Needs Chromium (hack/chromium.py says how to get it). With pngquant the pictures get about a third of their size.
"""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Found once the project is on the path:
from controller.domain.reasons import EXPLANATIONS, Skip  # noqa: E402
from hack.chromium import FLAGS, chromium, chromium_missing  # noqa: E402
from hack.demo import a_demo, ask, waiting  # noqa: E402
from hack.quiet import contradictions, standing  # noqa: E402

FOLDER = ROOT / "hack" / "screenshots"
SPEED = 4
TRIES = 300  # until nothing changes for as long as a picture takes
PAUSE = 0.5  # seconds
DESKTOP, PHONE = (1280, 960), (390, 844)
Scheme = Literal["light", "dark"]


def main() -> int:
    """Take them all; 1 if Chromium is missing."""
    missing = chromium_missing()
    if missing is not None:
        print(f"no pictures: {missing} is missing", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    with a_demo(SPEED) as base:
        asyncio.run(photograph(base))
    for picture in sorted(FOLDER.glob("*.png")):
        shrink(picture)
        print(f"{picture.relative_to(ROOT)}  {picture.stat().st_size // 1024} kB")
    return 0


async def photograph(base: str) -> None:
    """Each page in the light and in the dark, and the overview as a phone shows it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        for scheme in ("light", "dark"):
            for path, name, size, part in (
                ("/", "overview", (1280, 1240), ""),
                ("/", "charts", DESKTOP, ".charts"),
                ("/usage", "usage", DESKTOP, ""),
                ("/workers?status=failed", "workers", DESKTOP, ""),
                ("/boards", "boards", (1280, 1230), ""),
            ):
                await quietly(
                    base, partial(shoot, browser, base, path, f"{name}-{scheme}", scheme, size, part)
                )
            await quietly(base, partial(shoot_waiting, browser, base, f"job-{scheme}", scheme))
        await quietly(base, partial(shoot, browser, base, "/", "overview-phone", "light", PHONE))
        await browser.close()


async def quietly(base: str, take: Callable[[], Awaitable[bool]]) -> None:
    """Take a picture again until what it shows fits together, and nothing changed while it was taken."""
    for _ in range(TRIES):
        before = await asyncio.to_thread(moment, base)
        if not contradictions(*before) and await take():
            after = await asyncio.to_thread(moment, base)
            if standing(*before) == standing(*after):
                return
        await asyncio.sleep(PAUSE)
    raise TimeoutError("there was no quiet moment")


def moment(base: str) -> tuple[Any, Any]:
    """What the pages say right now: the overview, and what waits."""
    return ask(f"{base}/overview.json"), ask(f"{base}/jobs.json?status=pending")


async def shoot_waiting(browser: Browser, base: str, name: str, scheme: Scheme) -> bool:
    """A job that still waits for a board when its picture is taken, with its place in the queue."""
    path = await asyncio.to_thread(waiting, base)
    if path is None:
        return False
    says = EXPLANATIONS[Skip.NO_FREE_SLOTS].sentence
    return await shoot(
        browser, base, path, name, scheme, (1280, 900), needs=".panel.pending:has(.turn)", says=says
    )


async def shoot(
    browser: Browser,
    base: str,
    path: str,
    name: str,
    scheme: Scheme,
    size: tuple[int, int],
    part: str = "",
    *,
    needs: str = "main",
    says: str = "",
) -> bool:
    """Photograph what a window of this size shows; False if the page lacks what the picture is about."""
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, timezone_id="UTC"
    )
    try:
        page = await context.new_page()
        await page.goto(f"{base}{path}")
        if await page.locator(needs).filter(has_text=says).count() == 0:
            return False
        file = FOLDER / f"{name}.png"
        await (page.locator(part).screenshot(path=file) if part else page.screenshot(path=file))
        return True
    finally:
        await context.close()


def shrink(picture: Path) -> None:
    """Fewer colours, if the tool for it is there."""
    tool = shutil.which("pngquant")
    if tool is not None:
        command = [tool, "--quality=70-95", "--speed=1", "--strip", "--force", "--ext=.png", str(picture)]
        subprocess.run(command, check=False)  # noqa: S603 -- our own arguments


if __name__ == "__main__":
    sys.exit(main())
