"""A test's cluster goes with whoever asked for it, however that ends."""

import signal
import socket
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
import yaml

from hack.cluster.client import ROOT, cannot_start
from tests.clusters import leave_out
from tests.waiting import until

ASK = """
from hack.cluster.client import a_cluster
import time
with a_cluster(scheduler=False) as cluster:
    print(cluster.kubeconfig, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_nothing_outlives_the_process_that_asked_for_a_cluster(number: signal.Signals) -> None:
    missing = cannot_start(boards=False, kwok=False)
    if missing is not None:
        leave_out(missing)
    server, folder = asked_and_ended(number)

    async def all_gone() -> bool:
        return not answers(server) and not folder.exists()

    await until(all_gone)


def asked_and_ended(number: signal.Signals) -> tuple[str, Path]:
    """Where a cluster was, after whoever asked for it was ended by this signal."""
    command = [sys.executable, "-c", ASK]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as asking:
        assert asking.stdout is not None
        kubeconfig = Path(asking.stdout.readline().decode().strip())
        server = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]
        assert answers(server)
        asking.send_signal(number)
    return server, kubeconfig.parent.parent


def answers(server: str) -> bool:
    """Whether something listens there."""
    address = urllib.parse.urlsplit(server)
    try:
        socket.create_connection((str(address.hostname), address.port or 0), timeout=5).close()
    except OSError:
        return False
    return True
