"""The manifest of a runner pod, field by field, and the way back."""

from dataclasses import replace
from typing import Any

import pytest

from controller.domain.jobs import Entity, EntityType
from controller.domain.orders import PodOrder
from controller.domain.sightings import Pod
from controller.domain.workers import Adopted
from controller.gateways.kubernetes.parse import parse_pod
from controller.gateways.kubernetes.pod import (
    adopted_fields,
    belongs_to,
    label_value,
    make_pod,
    runner_labels,
)

ORG = Entity(7, "example-org", EntityType.ORGANIZATION)
USER = Entity(8, "someone", EntityType.USER)
ORDER = PodOrder(
    name="rise-riscv-runner-abc123def",
    instance="switchboard",
    image="ghcr.io/x/runner:prod",
    pool="scw-em-rv1",
    board="scw-em-rv1",
    entity=ORG,
    app_id="111",
    installation_id=55,
    labels=("riscv", "ubuntu-24.04-riscv"),
    job_url="https://github.com/example-org/llvm/actions/runs/1/job/2",
    runner_id=99,
)


def container(order: PodOrder) -> dict[str, Any]:
    (only,) = make_pod(order)["spec"]["containers"]
    return dict(only)


def sighted(order: PodOrder) -> Pod:
    return parse_pod(make_pod(order), order.resource)


def test_the_whole_pod_of_a_plain_pool() -> None:
    assert make_pod(ORDER) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "rise-riscv-runner-abc123def",
            "labels": {
                "app": "rise-riscv-runner",
                "riseproject.dev/board": "scw-em-rv1",
                "riseproject.dev/entity": "example-org",
                "app.kubernetes.io/instance": "switchboard",
                "app.kubernetes.io/component": "runner",
                "app.kubernetes.io/managed-by": "switchboard",
            },
            "annotations": {
                "riseproject.dev/repo": "example-org",
                "riseproject.dev/job-url": "https://github.com/example-org/llvm/actions/runs/1/job/2",
                "riseproject.dev/pool": "scw-em-rv1",
                "riseproject.dev/image": "ghcr.io/x/runner:prod",
                "riseproject.dev/labels": '["riscv", "ubuntu-24.04-riscv"]',
                "riseproject.dev/entity-id": "7",
                "riseproject.dev/entity-name": "example-org",
                "riseproject.dev/entity-type": "Organization",
                "riseproject.dev/installation": "55",
                "riseproject.dev/app": "111",
                "riseproject.dev/runner-id": "99",
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 525600,
            "terminationGracePeriodSeconds": 30,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "nodeSelector": {"riseproject.dev/board": "scw-em-rv1"},
            "containers": [
                {
                    "name": "runner",
                    "image": "ghcr.io/x/runner:prod",
                    "imagePullPolicy": "Always",
                    "securityContext": {"privileged": True},
                    "env": [
                        {
                            "name": "RUNNER_JITCONFIG",
                            "valueFrom": {
                                "secretKeyRef": {"name": "rise-riscv-runner-abc123def", "key": "jitconfig"}
                            },
                        },
                        {"name": "RUNNER_WAIT_FOR_DOCKER_IN_SECONDS", "value": "60"},
                        {"name": "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE", "value": "1"},
                    ],
                    "resources": {
                        "requests": {"riseproject.com/runner": "1"},
                        "limits": {"riseproject.com/runner": "1"},
                    },
                }
            ],
        },
    }


def test_held_nodes_are_avoided_with_one_value_a_requirement() -> None:
    spec = make_pod(replace(ORDER, held_nodes=("b", "a")))["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {
        "nodeSelectorTerms": [
            {
                "matchFields": [
                    {"key": "metadata.name", "operator": "NotIn", "values": ["a"]},
                    {"key": "metadata.name", "operator": "NotIn", "values": ["b"]},
                ]
            }
        ]
    }


def test_the_nodes_that_a_pod_avoids_are_read_back() -> None:
    assert sighted(ORDER).avoids == frozenset()
    raw = make_pod(replace(ORDER, held_nodes=("b", "a")))
    assert parse_pod(raw, ORDER.resource).avoids == {"a", "b"}
    required = raw["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"].append({"matchExpressions": []})
    assert parse_pod(raw, ORDER.resource).avoids == frozenset()  # the other term lets it go anywhere


def test_ephemeral_storage_and_the_pools_resources_join_the_slot() -> None:
    order = replace(
        ORDER,
        ephemeral_request="40Gi",
        ephemeral_limit="90Gi",
        requests={"memory": "2Gi", ORDER.resource: "5"},
        limits={"memory": "4Gi"},
    )
    assert container(order)["resources"] == {
        "requests": {"memory": "2Gi", "ephemeral-storage": "40Gi", "riseproject.com/runner": "1"},
        "limits": {"memory": "4Gi", "ephemeral-storage": "90Gi", "riseproject.com/runner": "1"},
    }


def test_the_pools_selector_is_added_but_cannot_move_the_pod_to_another_board() -> None:
    order = replace(ORDER, node_selector={"zone": "a", "riseproject.dev/board": "other"})
    assert make_pod(order)["spec"]["nodeSelector"] == {"zone": "a", "riseproject.dev/board": "scw-em-rv1"}


def test_the_pools_environment_comes_last_and_cannot_replace_the_credential() -> None:
    order = replace(
        ORDER, env={"RUNNER_WAIT_FOR_DOCKER_IN_SECONDS": "5", "RUNNER_JITCONFIG": "mine", "HTTP_PROXY": "p"}
    )
    variables = container(order)["env"]
    assert [one["name"] for one in variables] == [
        "RUNNER_JITCONFIG",
        "RUNNER_WAIT_FOR_DOCKER_IN_SECONDS",
        "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE",
        "HTTP_PROXY",
    ]
    assert "value" not in variables[0]
    assert variables[1]["value"] == "5"


def test_tolerations_pull_secrets_and_unprivileged_pods() -> None:
    toleration = {"key": "riscv", "operator": "Exists", "effect": "NoSchedule"}
    order = replace(
        ORDER,
        tolerations=(toleration,),
        image_pull_secrets=("regcred",),
        image_pull_policy="IfNotPresent",
        privileged=False,
        host_network=False,
    )
    spec = make_pod(order)["spec"]
    assert spec["tolerations"] == [toleration]
    assert spec["imagePullSecrets"] == [{"name": "regcred"}]
    assert spec["hostNetwork"] is False
    assert "dnsPolicy" not in spec
    assert spec["containers"][0]["securityContext"] == {"privileged": False}
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"


def test_no_command_no_init_containers_no_volumes() -> None:
    spec = make_pod(ORDER)["spec"]
    assert not {"volumes", "initContainers", "serviceAccountName"} & spec.keys()
    assert not {"command", "args", "volumeMounts"} & spec["containers"][0].keys()


def test_another_board_label_is_used_throughout() -> None:
    order = replace(ORDER, board_label="example.com/board")
    assert runner_labels(order)["example.com/board"] == "scw-em-rv1"
    assert make_pod(order)["spec"]["nodeSelector"] == {"example.com/board": "scw-em-rv1"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("octo-org", "octo-org"),
        ("legacy-", "legacy"),
        ("_emu", "emu"),
        ("a b/c", "a-b-c"),
        ("x" * 80, "x" * 63),
    ],
)
def test_label_values_are_what_kubernetes_allows(text: str, value: str) -> None:
    assert label_value(text) == value


def test_an_organizations_worker_is_read_back_from_its_pod() -> None:
    assert adopted_fields(sighted(ORDER)) == Adopted(
        name=ORDER.name,
        entity=ORG,
        app_id="111",
        installation_id=55,
        labels=("riscv", "ubuntu-24.04-riscv"),
        pool="scw-em-rv1",
        image="ghcr.io/x/runner:prod",
        repo=None,
        runner_id=99,
    )


def test_a_personal_worker_keeps_its_repository() -> None:
    adopted = adopted_fields(sighted(replace(ORDER, entity=USER, repo="someone/thing", runner_id=None)))
    assert adopted is not None
    assert (adopted.entity, adopted.repo, adopted.runner_id) == (USER, "someone/thing", None)


@pytest.mark.parametrize(
    "left_out", ["entity-id", "entity-name", "entity-type", "installation", "app", "pool", "labels", "image"]
)
def test_a_pod_that_does_not_tell_enough_is_not_adopted(left_out: str) -> None:
    pod = sighted(ORDER)
    notes = {key: value for key, value in pod.annotations.items() if key != f"riseproject.dev/{left_out}"}
    assert adopted_fields(replace(pod, annotations=notes)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("entity-id", "seven"),
        ("entity-type", "Robot"),
        ("labels", "[oops"),
        ("labels", '"one"'),
        ("runner-id", "x"),
    ],
)
def test_a_pod_that_tells_nonsense_is_not_adopted(key: str, value: str) -> None:
    pod = sighted(ORDER)
    notes = {**pod.annotations, f"riseproject.dev/{key}": value}
    assert adopted_fields(replace(pod, annotations=notes)) is None


def test_a_personal_worker_without_a_repository_is_not_adopted() -> None:
    assert adopted_fields(sighted(replace(ORDER, entity=USER))) is None


def test_two_installations_know_their_own_pods() -> None:
    labels = runner_labels(ORDER)
    assert belongs_to(labels, "switchboard")
    assert not belongs_to(labels, "switchboard-two")
    assert not belongs_to({"app": "rise-riscv-runner"}, "switchboard")
