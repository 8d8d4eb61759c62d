"""Take the pictures of the README: start the demo, wait until there is something to see, and photograph it.

    make screenshots            into hack/screenshots/

Needs Chromium (hack/chromium.py says how to get it). With pngquant the pictures get about a third of their size.
"""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hack.chromium import FLAGS, chromium, chromium_missing  # noqa: E402 -- found once the project is on the path

FOLDER = ROOT / "hack" / "screenshots"
SPEED = 4
PATIENCE = 180.0  # seconds
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
    with demo() as base:
        asyncio.run(photograph(base))
    for picture in sorted(FOLDER.glob("*.png")):
        shrink(picture)
        print(f"{picture.relative_to(ROOT)}  {picture.stat().st_size // 1024} kB")
    return 0


@contextmanager
def demo() -> Iterator[str]:
    """The demo on a free port, until a worker has failed and a job waits for a board."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(ROOT / ".venv/bin/switchboard"), "demo", "--speed", str(SPEED), "--port", str(port)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    base = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: bool(ask(f"{base}/overview.json")["holds"]))
        wait_for(lambda: waiting(base) is not None)
        yield base
    finally:
        running.terminate()
        running.wait(timeout=60)


def wait_for(done: Any) -> None:
    """Look every half second; a demo that does not come so far is an error."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if done():
                return
        except OSError:
            pass  # not serving yet
        time.sleep(0.5)
    raise TimeoutError("the demo has not come so far")


def ask(url: str) -> Any:
    """A page's JSON twin."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 -- our own demo
        return json.load(answer)


def waiting(base: str) -> str | None:
    """The page of a public job that waits for a board, with others before it."""
    jobs = ask(f"{base}/jobs.json?status=pending")
    full = [
        job for job in jobs if (job["reason"] or {}).get("reason") == "no_free_slots" and not job["private"]
    ]
    return f"/jobs/{full[-1]['job_id']}" if full else None


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
