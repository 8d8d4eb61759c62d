"""Boards of several slots whose hold is over: one worker tries each, whoever else is on the way."""

from collections.abc import Iterable

import pytest

from controller.decide.capacity import Claim
from controller.decide.probes import Probes, place_probes
from controller.domain.sightings import NodeView, Pod, PodPhase, PodView
from controller.domain.workers import Worker
from tests.unit.decide.builders import BOARD, NAME, a_node, a_pod, a_worker, ago

BIG, OTHER = a_node("big", slots=4), a_node("other", slots=4)
ELSEWHERE = a_node("elsewhere", slots=4, labels={BOARD: "y"})
SMALL = a_node("small", slots=1)
CLAIMS = {"x": Claim({BOARD: "x"}), "y": Claim({BOARD: "y"})}
ALL = frozenset({"big", "other", "elsewhere", "small"})


def probes(workers: Iterable[Worker] = (), pods: Iterable[Pod] = (), probing: frozenset[str] = ALL) -> Probes:
    nodes = NodeView({node.name: node for node in (BIG, OTHER, ELSEWHERE, SMALL)}, 1)
    return place_probes(nodes, PodView({pod.name: pod for pod in pods}, 1), workers, probing, CLAIMS)


def an_unplaced_pod(avoids: frozenset[str] = frozenset()) -> Pod:
    return a_pod(phase=PodPhase.PENDING, node=None, accepted_at=None, running_at=None, avoids=avoids)


def test_a_board_that_is_tried_offers_one_slot_beside_those_in_use() -> None:
    found = probes(pods=[a_pod(node="big"), a_pod("ended", node="big", phase=PodPhase.FAILED)])
    assert found.offers == {"big": 2, "other": 1, "elsewhere": 1}
    assert found.tried == {"big", "other", "elsewhere"}
    assert found.closed == frozenset()


def test_boards_that_are_not_on_trial_stay_as_they_are() -> None:
    found = probes(probing=frozenset({"small", "gone"}))
    assert found.offers == {}
    assert found.tried == frozenset()


@pytest.mark.parametrize(
    ("worker", "pods", "closed"),
    [
        (a_worker(node="big"), [], {"big"}),
        (a_worker(), [a_pod(node="big")], {"big"}),  # the row does not know yet
        (a_worker(), [], {"big", "other"}),  # reserved: any board of its pool
        (a_worker(pool="y"), [], {"elsewhere"}),
        (a_worker(), [an_unplaced_pod()], {"big", "other"}),
        (a_worker(), [an_unplaced_pod(avoids=frozenset({"big"}))], {"other"}),
        (a_worker(), [an_unplaced_pod(avoids=frozenset({"big", "other"}))], set()),
        (a_worker(pool="gone"), [], {"big", "other", "elsewhere"}),  # nobody knows where it may go
        (a_worker(online_at=ago(5)), [], set()),
        (a_worker(node="big", job_id=7), [], set()),
        (a_worker(node="small"), [], set()),
    ],
)
def test_only_the_boards_that_somebody_may_be_about_to_try_are_closed(
    worker: Worker, pods: list[Pod], closed: set[str]
) -> None:
    found = probes([worker], pods)
    assert found.closed == closed
    assert found.tried == {"big", "other", "elsewhere"} - closed


def test_a_pod_that_tolerates_no_taint_does_not_close_a_tainted_board() -> None:
    tainted = a_node("big", slots=4, taints=(("only", "kernel", "NoSchedule"),))
    view = NodeView({"big": tainted}, 1)
    found = place_probes(view, PodView({}, 1), [a_worker(NAME)], frozenset({"big"}), CLAIMS)
    assert found.closed == frozenset()
