"""Take the pictures of the README: start the demo, wait until there is something to see, and photograph it.

    make screenshots            into hack/screenshots/

Needs Chromium (hack/chromium.py says how to get it). With pngquant the pictures get about a third of their size.
"""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Found once the project is on the path:
from hack.chromium import FLAGS, chromium, chromium_missing  # noqa: E402
from hack.demo import a_demo, waiting  # noqa: E402

FOLDER = ROOT / "hack" / "screenshots"
SPEED = 4
TRIES = 8  # a waiting job may have started before it is photographed
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
            await shoot(browser, base, "/", f"overview-{scheme}", scheme, (1280, 1240))
            await shoot(browser, base, "/", f"charts-{scheme}", scheme, DESKTOP, part=".charts")
            await shoot(browser, base, "/usage", f"usage-{scheme}", scheme, DESKTOP)
            await shoot(browser, base, "/workers?status=failed", f"workers-{scheme}", scheme, DESKTOP)
            await shoot(browser, base, "/boards", f"boards-{scheme}", scheme, (1280, 1230))
            await shoot_waiting(browser, base, f"job-{scheme}", scheme)
        await shoot(browser, base, "/", "overview-phone", "light", PHONE)
        await browser.close()


async def shoot_waiting(browser: Browser, base: str, name: str, scheme: Scheme) -> None:
    """A job that still waits when its picture is taken."""
    for _ in range(TRIES):
        path = await asyncio.to_thread(waiting, base)
        if path is not None and await shoot(browser, base, path, name, scheme, (1280, 900), needs=".turn"):
            return
        await asyncio.sleep(1.0)
    raise TimeoutError("no job waited for long enough")


async def shoot(
    browser: Browser,
    base: str,
    path: str,
    name: str,
    scheme: Scheme,
    size: tuple[int, int],
    *,
    part: str = "",
    needs: str = "main",
) -> bool:
    """Photograph what a window of this size shows; False if the page lacks what the picture is about."""
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, timezone_id="UTC"
    )
    try:
        page = await context.new_page()
        await page.goto(f"{base}{path}")
        if await page.locator(needs).count() == 0:
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
