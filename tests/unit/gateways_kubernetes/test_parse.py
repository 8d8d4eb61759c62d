"""Raw JSON of the API server becomes sightings, whatever is missing."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.domain.sightings import PodPhase
from controller.gateways.kubernetes.parse import parse_node, parse_pod, parse_time

RESOURCE = "riseproject.com/runner"


def a_raw_pod(state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "runner-a",
            "uid": "u-1",
            "resourceVersion": "42",
            "creationTimestamp": "2026-03-01T12:00:00Z",
            "labels": {"app": "rise-riscv-runner"},
            "annotations": {"riseproject.dev/repo": "org/repo"},
        },
        "spec": {
            "nodeName": "board-1",
            "nodeSelector": {"riseproject.dev/board": "x"},
            "activeDeadlineSeconds": 525600,
            "containers": [{"name": "runner", "resources": {"limits": {RESOURCE: "1"}}}],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "runner", "state": state or {}}],
            **status,
        },
    }


def a_raw_node(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "board-1", "labels": {"riseproject.dev/board": "x"}},
        "spec": spec,
        "status": {
            "allocatable": {RESOURCE: "1", "cpu": "4"},
            "conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
        },
    }


def test_a_running_pod_shows_where_and_since_when() -> None:
    raw = a_raw_pod({"running": {"startedAt": "2026-03-01T12:00:05Z"}}, startTime="2026-03-01T12:00:01Z")
    pod = parse_pod(raw, RESOURCE)
    assert (pod.name, pod.uid, pod.node, pod.phase) == ("runner-a", "u-1", "board-1", PodPhase.RUNNING)
    assert pod.resource_version == 42
    assert pod.created_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert pod.accepted_at == datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC)
    assert pod.running_at == datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
    assert (pod.slots, pod.deadline_seconds) == (1, 525600)
    assert pod.labels == {"app": "rise-riscv-runner"}
    assert pod.node_selector == {"riseproject.dev/board": "x"}


def test_a_finished_pod_keeps_when_it_ran_and_how_it_ended() -> None:
    terminated = {
        "exitCode": 7,
        "reason": "Error",
        "startedAt": "2026-03-01T12:00:05Z",
        "finishedAt": "2026-03-01T12:30:00Z",
    }
    pod = parse_pod(a_raw_pod({"terminated": terminated}, phase="Failed"), RESOURCE)
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.FAILED, 7, "Error")
    assert pod.running_at == datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
    assert pod.finished_at == datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def test_the_pods_own_reason_goes_before_the_containers() -> None:
    raw = a_raw_pod(
        {"terminated": {"exitCode": 137, "reason": "Error"}}, reason="DeadlineExceeded", message="late"
    )
    pod = parse_pod(raw, RESOURCE)
    assert (pod.reason, pod.message) == ("DeadlineExceeded", "late")


def test_a_waiting_container_says_why() -> None:
    pod = parse_pod(a_raw_pod({"waiting": {"reason": "ErrImagePull", "message": "not found"}}), RESOURCE)
    assert (pod.waiting, pod.waiting_message) == ("ErrImagePull", "not found")


def test_an_injected_sidecar_is_not_taken_for_the_runner() -> None:
    raw = a_raw_pod({"waiting": {"reason": "ContainerCreating"}})
    raw["status"]["containerStatuses"].insert(
        0, {"name": "proxy", "state": {"running": {"startedAt": "2026-03-01T12:00:05Z"}}}
    )
    pod = parse_pod(raw, RESOURCE)
    assert (pod.waiting, pod.running_at) == ("ContainerCreating", None)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ({"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}, "0/3 nodes"),
        ({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}, "SchedulingGated"),
        ({"type": "PodScheduled", "status": "True"}, None),
        ({"type": "Ready", "status": "False", "message": "no"}, None),
    ],
)
def test_an_unschedulable_pod_says_why(condition: dict[str, str], says: str | None) -> None:
    assert parse_pod(a_raw_pod(conditions=[condition]), RESOURCE).unschedulable == says


@pytest.mark.parametrize(
    ("containers", "init", "slots"),
    [
        ([{"requests": {RESOURCE: "1"}, "limits": {RESOURCE: "1"}}], [], 1),
        ([{"limits": {RESOURCE: "1"}}, {"limits": {RESOURCE: "2"}}], [], 3),
        ([{"limits": {"cpu": "1"}}], [], 0),
        ([{}], [{"limits": {RESOURCE: "1"}}], 1),
        ([{"limits": {RESOURCE: "garbage"}}], [], 0),
    ],
)
def test_slots_are_what_the_scheduler_would_count(
    containers: list[dict[str, Any]], init: list[dict[str, Any]], slots: int
) -> None:
    raw = a_raw_pod()
    raw["spec"]["containers"] = [{"name": f"c{n}", "resources": one} for n, one in enumerate(containers)]
    raw["spec"]["initContainers"] = [{"name": f"i{n}", "resources": one} for n, one in enumerate(init)]
    assert parse_pod(raw, RESOURCE).slots == slots


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"metadata": {"name": "x"}, "spec": {"containers": None}, "status": {"containerStatuses": None}},
        {"metadata": {"name": "x", "labels": None}, "status": {"phase": "New", "conditions": [None]}},
    ],
)
def test_missing_fields_are_missing_facts(raw: dict[str, Any]) -> None:
    pod = parse_pod(raw, RESOURCE)
    assert (pod.phase, pod.node, pod.running_at, pod.slots) == (PodPhase.UNKNOWN, None, None, 0)
    node = parse_node(raw, RESOURCE)
    assert (node.ready, node.unreachable, node.slots, node.taints) == (False, False, 0, ())


def test_a_healthy_node_offers_its_slots() -> None:
    node = parse_node(a_raw_node(), RESOURCE)
    assert (node.name, node.slots) == ("board-1", 1)
    assert (node.ready, node.schedulable, node.unreachable) == (True, True, False)


def test_a_cordoned_node_is_not_schedulable() -> None:
    assert not parse_node(a_raw_node(unschedulable=True), RESOURCE).schedulable


def test_taints_are_kept_and_only_the_unreachable_one_is_judged() -> None:
    taints = [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]
    node = parse_node(a_raw_node(taints=taints), RESOURCE)
    assert node.unreachable
    assert node.schedulable
    assert node.taints == (("node.kubernetes.io/unreachable", "", "NoExecute"),)
    assert not parse_node(a_raw_node(taints=[{"key": "own", "effect": "NoSchedule"}]), RESOURCE).unreachable


def test_a_heartbeat_leaves_the_node_equal() -> None:
    before, after = a_raw_node(), a_raw_node()
    after["metadata"]["resourceVersion"] = "2"
    after["status"]["conditions"][1]["lastHeartbeatTime"] = "2026-03-01T12:00:00Z"
    assert parse_node(before, RESOURCE) == parse_node(after, RESOURCE)


@pytest.mark.parametrize("text", [None, "", "yesterday", 5])
def test_a_time_that_cannot_be_read_is_none(text: object) -> None:
    assert parse_time(text) is None


def test_times_with_fractions_are_read() -> None:
    assert parse_time("2026-03-01T12:00:00.000001Z") == datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
