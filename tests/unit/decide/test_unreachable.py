"""Workers stranded on nodes whose kubelet is gone."""

import pytest

from controller.decide.unreachable import find_stranded
from controller.domain.changes import Decided, Fail, ForceDeletePod
from controller.domain.reasons import Reason
from controller.domain.sightings import Node, Pod, PodPhase, Unknown
from controller.domain.workers import WorkerStatus
from tests.unit.decide.builders import NAME, a_node, a_pod, a_view, a_worker, ago

LOST = a_node(unreachable=True, ready=False)


@pytest.mark.parametrize(
    "pod",
    [a_pod(), a_pod(phase=PodPhase.PENDING), a_pod(phase=PodPhase.UNKNOWN), a_pod(deleting_since=ago(9))],
)
def test_a_worker_on_an_unreachable_node_fails_and_its_pod_is_force_deleted(pod: Pod) -> None:
    assert find_stranded(a_view([a_worker()], [pod], [LOST])) == Decided(
        (Fail(NAME, Reason.NODE_UNREACHABLE, {"node": "board-1"}),), (ForceDeletePod(NAME),)
    )


def test_the_pod_of_an_ended_worker_goes_too() -> None:
    worker = a_worker(status=WorkerStatus.FAILED)
    assert find_stranded(a_view([worker], [a_pod()], [LOST])) == Decided(effects=(ForceDeletePod(NAME),))


@pytest.mark.parametrize("phase", [PodPhase.SUCCEEDED, PodPhase.FAILED])
def test_a_pod_that_has_ended_is_not_stranded(phase: PodPhase) -> None:
    assert find_stranded(a_view([a_worker()], [a_pod(phase=phase)], [LOST])) == Decided()


@pytest.mark.parametrize("node", [a_node(), a_node(ready=False), a_node(schedulable=False)])
def test_a_node_that_is_merely_unwell_strands_nobody(node: Node) -> None:
    assert find_stranded(a_view([a_worker()], [a_pod()], [node])) == Decided()


def test_an_unknown_view_strands_nobody() -> None:
    assert find_stranded(a_view([a_worker()], [a_pod()], Unknown("nodes: 500"))) == Decided()
    assert find_stranded(a_view([a_worker()], Unknown("pods: 500"), [LOST])) == Decided()
    assert find_stranded(a_view([a_worker()], [a_pod()], [])) == Decided()
    assert find_stranded(a_view([a_worker()], [a_pod(node=None)], [LOST])) == Decided()
