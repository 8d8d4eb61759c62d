"""Find Chromium for the browser tests and the screenshots; on Debian, as root, install it first.

    python hack/chromium.py     prints where it is, or exits 1 and says how to get it

What is installed, from the distribution's own packages: chromium, chromium-driver, and fonts-noto-color-emoji so that
emoji are drawn. Nothing is downloaded from anywhere else.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("chromium", "chromium-driver", "fonts-noto-core", "fonts-noto-color-emoji")
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def chromium() -> str | None:
    """Where Chromium is, if it is installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def chromium_missing() -> str | None:
    """What is missing for tests in a browser, if anything, after trying to install it."""
    if chromium() is None and can_install():
        install()
    if chromium() is None:
        return "Chromium (on Debian: apt-get install " + " ".join(PACKAGES) + ")"
    return None


def can_install() -> bool:
    """Whether this is root on Debian."""
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def install() -> None:
    """Install the packages; what goes wrong is said by whoever then finds no Chromium."""
    print(f"installing {' '.join(PACKAGES)} …", flush=True)
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "check": False}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES],
    ):
        subprocess.run(command, stdout=subprocess.DEVNULL, **quiet)  # type: ignore[call-overload]  # noqa: S603


if __name__ == "__main__":
    missing = chromium_missing()
    print(missing or chromium())
    sys.exit(1 if missing else 0)
