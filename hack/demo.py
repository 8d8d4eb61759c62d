"""The demo as a child process, for whoever looks at it from outside: the screenshots and the browser tests."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 240.0  # seconds, on a machine that is busy with other things
TOKEN = "the-token-of-this-demo"  # noqa: S105 -- nobody else reaches it


@contextmanager
def a_demo(speed: float) -> Iterator[str]:
    """The demo on a free port, from when a worker has failed in it and a job waits for a board until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(ROOT / ".venv/bin/switchboard"), "demo", "--speed", str(speed), "--port", str(port)]
    environment = {**os.environ, "SWITCHBOARD_ADMIN_TOKEN": TOKEN}
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)  # noqa: S603 -- our own
    base = f"http://127.0.0.1:{port}"
    try:
        wait_for(running, lambda: bool(ask(f"{base}/overview.json")["holds"]))
        wait_for(running, lambda: waiting(base) is not None)
        yield base
    finally:
        running.terminate()
        running.wait(timeout=60)


def wait_for(running: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
    """Look every half second; a demo that ends or does not come so far is an error."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and running.poll() is None:
        try:
            if done():
                return
        except OSError:
            pass  # not serving yet
        time.sleep(0.5)
    raise TimeoutError(f"the demo has not come so far; its exit code is {running.poll()}")


def ask(url: str) -> Any:
    """A page's JSON twin."""
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 -- our own demo
        return json.load(answer)


def waiting(base: str) -> str | None:
    """The page of a public job that waits for a board, with others before it."""
    jobs = ask(f"{base}/jobs.json?status=pending")
    full = [
        job for job in jobs if (job["reason"] or {}).get("reason") == "no_free_slots" and not job["private"]
    ]
    return f"/jobs/{full[-1]['job_id']}" if full else None
