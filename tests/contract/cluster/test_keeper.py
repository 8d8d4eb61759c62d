"""A test's cluster goes with whoever asked for it, however that ends."""

import os
import signal
from collections.abc import Iterator

import pytest

from hack.cluster.client import cannot_start
from tests.clusters import Asking, asking, leave_out
from tests.processes import children

LEAST = 4  # the keeper, etcd, the API server and the controllers


@pytest.fixture
def asked() -> Iterator[Asking]:
    """Someone who has asked for a control plane."""
    missing = cannot_start(boards=False, kwok=False)
    if missing is not None:
        leave_out(missing)
    with asking("scheduler=False") as someone:
        yield someone


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_nothing_outlives_the_process_that_asked_for_a_cluster(
    asked: Asking, number: signal.Signals
) -> None:
    processes = asked.started()
    assert len(processes) >= LEAST
    asked.process.send_signal(number)
    await asked.all_gone(processes)


async def test_nothing_outlives_a_keeper_that_crashes(asked: Asking) -> None:
    processes = asked.started()
    (keeper,) = children(asked.process.pid)
    os.kill(keeper.pid, signal.SIGKILL)
    asked.process.send_signal(signal.SIGINT)
    await asked.all_gone(processes)
