"""One real cluster for a process of tests: three boards on this machine, and kwok for hundreds that are not there.

Tests in several processes do not share boards: each process has a cluster of its own.

An existing cluster is used when KUBECONFIG and SWITCHBOARD_E2E=1 are set; tests that break its parts are left out then.
"""

from collections.abc import Iterator

import pytest

from hack.cluster.boards import BoardSpec
from hack.cluster.client import Cluster, a_cluster, cannot_start, given_kubeconfig
from tests.clusters import OWN, leave_out
from tests.e2e.images import runner_image

# board-3 takes several at once, so that what takes minutes to go wrong can do so side by side.
BOARDS = (BoardSpec("board-1", "rv1"), BoardSpec("board-2", "rv1"), BoardSpec("board-3", "bench", 4))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real clusters take their time."""
    for item in items:
        if "tests/e2e" in str(item.path):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster, with the runner image on its boards."""
    given = given_kubeconfig()
    if given is not None:
        yield Cluster(given, None, None)
        return
    missing = cannot_start(boards=True, kwok=True)
    if missing is not None:
        leave_out(missing)
    with a_cluster(BOARDS, kwok=True) as started:
        started.load_image(runner_image())
        yield started


@pytest.fixture
def own_cluster(cluster: Cluster) -> Cluster:
    """A cluster whose parts may be killed."""
    if not cluster.ours:
        leave_out(OWN)
    return cluster
