"""The images that the boards of the tests know."""

from pathlib import Path

from hack.cluster.images import Image

ROOT = Path(__file__).resolve().parent.parent.parent
RUNNER = "switchboard.local/runner:1"
# No registry answers there, at once.
MISSING = "127.0.0.1:1/runner:missing"


def runner_image() -> Image:
    """busybox, the reference entrypoint, and a stand-in for the Actions runner."""
    files = {
        "entrypoint.sh": (ROOT / "deploy" / "runner" / "entrypoint.sh").read_bytes(),
        "home/runner/run.sh": (ROOT / "tests" / "e2e" / "runner" / "run.sh").read_bytes(),
    }
    return Image(RUNNER, ("/entrypoint.sh",), files)
