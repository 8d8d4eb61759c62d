"""`make cluster-up` and `make cluster-down`: a cluster that stays until it is taken down."""

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from hack.cluster.boards import BoardSpec
from hack.cluster.client import ROOT, cannot_start, keeper_command, read_answer
from hack.cluster.keeper import STOP
from hack.cluster.programs import cache_folder, say

BOARDS = (BoardSpec("board-1", "rv1"), BoardSpec("board-2", "rv1"))
STOP_LIMIT = 60.0
LOOK = 0.1


def main(arguments: list[str]) -> int:
    """Bring a cluster up or take it down."""
    if arguments == ["up"]:
        return up()
    if arguments == ["down"]:
        return down()
    say("usage: python -m hack.cluster up | down")
    return 2


def up() -> int:
    """Start a cluster in the background and tell how to use it."""
    if _control() is not None:
        say("A cluster is up already; `make cluster-down` takes it down.")
        return 1
    missing = cannot_start(boards=False, kwok=True)
    if missing is not None:
        say(f"No cluster can be started here; missing: {missing}")
        return 1
    no_boards = cannot_start(boards=True, kwok=False)
    if no_boards is not None:
        say(f"No real boards, only a control plane and kwok; missing: {no_boards}")
    folder = _folder()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _fifo().unlink(missing_ok=True)
    os.mkfifo(_fifo(), 0o600)
    command = keeper_command(folder, () if no_boards else BOARDS, scheduler=True, kwok=True)
    # Open for reading and writing, so that it never ends: only the word on it ends the keeper.
    listening = os.open(_fifo(), os.O_RDWR)
    keeper = subprocess.Popen(
        command, cwd=ROOT, stdin=listening, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    os.close(listening)
    kubeconfig = read_answer(keeper)["kubeconfig"]
    print(f"export KUBECONFIG={kubeconfig}")
    return 0


def down() -> int:
    """End the cluster that was brought up, and wait until it is gone."""
    control = _control()
    if control is None:
        say("No cluster is up.")
        return 0
    os.write(control, f"{STOP}\n".encode())
    os.close(control)
    deadline = time.monotonic() + STOP_LIMIT
    while (control := _control()) is not None:
        os.close(control)
        if time.monotonic() > deadline:
            say("The cluster does not end.")
            return 1
        time.sleep(LOOK)
    _fifo().unlink()
    return 0


def _folder() -> Path:
    return cache_folder() / "cluster"


def _fifo() -> Path:
    return cache_folder() / "cluster.control"


def _control() -> int | None:
    """The way to tell a running keeper something; None if there is none."""
    try:
        return os.open(_fifo(), os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return None
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
