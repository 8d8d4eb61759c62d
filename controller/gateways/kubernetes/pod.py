"""The runner pod: `make_pod` writes its manifest, `adopted_fields` reads a worker back from one. Pure.

What a worker is stands in its pod's labels and annotations too, so that a pod whose row was lost with a
database can be adopted. Nothing secret does: the JIT config comes from a Secret of the pod's name.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from controller.domain.jobs import Entity, EntityType, normalise_labels
from controller.domain.orders import PodOrder
from controller.domain.sightings import Pod
from controller.domain.workers import Adopted

DOMAIN = "riseproject.dev"
APP = "rise-riscv-runner"
INSTANCE_LABEL = "app.kubernetes.io/instance"
COMPONENT_LABEL = "app.kubernetes.io/component"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
COMPONENT = "runner"
MANAGED_BY = "switchboard"
ENTITY_LABEL = f"{DOMAIN}/entity"
ENDING_REASON = f"{DOMAIN}/ending-reason"
CONTAINER = "runner"
JIT_KEY = "jitconfig"
JIT_VARIABLE = "RUNNER_JITCONFIG"
TERMINATION_GRACE_SECONDS = 30
LABEL_LENGTH = 63


def make_pod(order: PodOrder) -> dict[str, Any]:
    """Write the manifest of a runner pod."""
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": order.active_deadline_seconds,
        "terminationGracePeriodSeconds": TERMINATION_GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostNetwork": order.host_network,
        "nodeSelector": node_selector(order),
        "containers": [_container(order)],
    }
    if order.host_network:
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    if order.held_nodes:
        spec["affinity"] = {"nodeAffinity": _away_from(order.held_nodes)}
    if order.tolerations:
        spec["tolerations"] = [dict(toleration) for toleration in order.tolerations]
    if order.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in order.image_pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": order.name,
            "labels": runner_labels(order),
            "annotations": _annotations(order),
        },
        "spec": spec,
    }


def runner_labels(order: PodOrder) -> dict[str, str]:
    """The labels of the pod and of its Secret."""
    return {
        "app": APP,
        order.board_label: order.board,
        ENTITY_LABEL: label_value(order.entity.name),
        **instance_labels(order.instance),
    }


def instance_labels(instance: str) -> dict[str, str]:
    """The labels by which one installation knows its own objects, and leaves another's alone."""
    return {
        INSTANCE_LABEL: label_value(instance),
        COMPONENT_LABEL: COMPONENT,
        MANAGED_BY_LABEL: MANAGED_BY,
    }


def belongs_to(labels: Mapping[str, str], instance: str) -> bool:
    """Whether an object with these labels was made by this installation."""
    return all(labels.get(key) == value for key, value in instance_labels(instance).items())


def node_selector(order: PodOrder) -> dict[str, str]:
    """The pool's own selector, and always the board."""
    return {**order.node_selector, order.board_label: order.board}


def label_value(text: str) -> str:
    """Bring a text into the form that Kubernetes allows as a label's value."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text).lstrip("-_.")[:LABEL_LENGTH].rstrip("-_.")


def adopted_fields(pod: Pod) -> Adopted | None:
    """Read the worker back from its pod; None when labels or annotations do not tell enough."""
    notes = pod.annotations
    try:
        entity_id = int(notes[f"{DOMAIN}/entity-id"])
        entity_type = EntityType(notes[f"{DOMAIN}/entity-type"])
        installation = int(notes[f"{DOMAIN}/installation"])
        listed = json.loads(notes[f"{DOMAIN}/labels"])
        runner = notes.get(f"{DOMAIN}/runner-id")
        runner_id = int(runner) if runner else None
        app_id, pool = notes[f"{DOMAIN}/app"], notes[f"{DOMAIN}/pool"]
        entity_name, image = notes[f"{DOMAIN}/entity-name"], notes[f"{DOMAIN}/image"]
    except (KeyError, ValueError):
        return None
    repo = notes.get(f"{DOMAIN}/repo", "")
    if not isinstance(listed, list) or (entity_type is EntityType.USER and "/" not in repo):
        return None
    return Adopted(
        name=pod.name,
        entity=Entity(entity_id, entity_name, entity_type),
        app_id=app_id,
        installation_id=installation,
        labels=normalise_labels(str(label) for label in listed),
        pool=pool,
        image=image,
        repo=repo if "/" in repo else None,
        runner_id=runner_id,
    )


def _annotations(order: PodOrder) -> dict[str, str]:
    notes = {
        "repo": order.repo or order.entity.name,
        "pool": order.pool,
        "image": order.image,
        "labels": json.dumps(list(order.labels)),
        "entity-id": str(order.entity.id),
        "entity-name": order.entity.name,
        "entity-type": order.entity.type.value,
        "installation": str(order.installation_id),
        "app": order.app_id,
    }
    if order.job_url:
        notes["job-url"] = order.job_url
    if order.runner_id is not None:
        notes["runner-id"] = str(order.runner_id)
    return {f"{DOMAIN}/{key}": value for key, value in notes.items()}


def _container(order: PodOrder) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": order.image,
        "imagePullPolicy": order.image_pull_policy,
        "securityContext": {"privileged": order.privileged},
        "env": _environment(order),
        "resources": _resources(order),
    }


def _environment(order: PodOrder) -> list[dict[str, Any]]:
    """The pool may override our defaults, but not where the credential comes from."""
    credential = {"secretKeyRef": {"name": order.name, "key": JIT_KEY}}
    values = {
        "RUNNER_WAIT_FOR_DOCKER_IN_SECONDS": "60",
        "ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE": "1",
        **order.env,
    }
    values.pop(JIT_VARIABLE, None)
    return [
        {"name": JIT_VARIABLE, "valueFrom": credential},
        *({"name": name, "value": value} for name, value in values.items()),
    ]


def _resources(order: PodOrder) -> dict[str, dict[str, str]]:
    """The pool's own, then ephemeral storage, and always exactly one slot: one pod, one board."""
    requests, limits = dict(order.requests), dict(order.limits)
    if order.ephemeral_request:
        requests["ephemeral-storage"] = order.ephemeral_request
    if order.ephemeral_limit:
        limits["ephemeral-storage"] = order.ephemeral_limit
    return {"requests": {**requests, order.resource: "1"}, "limits": {**limits, order.resource: "1"}}


def _away_from(held: Sequence[str]) -> dict[str, Any]:
    """One requirement a node: the API server refuses a field selector with more than one value."""
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in sorted(set(held))]
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}
    }
