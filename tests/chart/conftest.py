"""The real control plane that releases are installed on. Without nodes: what is decided before a pod runs."""

from collections.abc import Iterator

import pytest

from hack.cluster.client import Cluster, a_cluster, cannot_start, given_kubeconfig
from tests.clusters import leave_out


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """An API server with its controllers: a given one, or one of our own."""
    given = given_kubeconfig()
    if given is not None:
        yield Cluster(given, None, None)
        return
    missing = cannot_start(boards=False, kwok=False)
    if missing is not None:
        leave_out(missing)
    with a_cluster(scheduler=False) as started:
        yield started
