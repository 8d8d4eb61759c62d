"""Reading a request's object as a strict decoder would, and giving it the defaults that the server gives.

Stands before `validation`: what has the wrong type is a 400, as in the real server, never a 422.
"""

import base64
import binascii
import json
from typing import Any

from controller.simulators.cluster.objects import PODS, SECRETS, Json, Resource, clone
from controller.simulators.cluster.quantities import COMPLAINT, parse_quantity
from controller.simulators.cluster.status import bad_request

MAPS_OF_TEXT = ("labels", "annotations", "nodeSelector", "data", "stringData")
TEXTS = (
    "name",
    "namespace",
    "uid",
    "image",
    "restartPolicy",
    "nodeName",
    "serviceAccountName",
    "type",
    "dnsPolicy",
)
NUMBERS = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerationSeconds")
SWITCHES = (
    "hostNetwork",
    "privileged",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "unschedulable",
)
LISTS = (
    "containers",
    "initContainers",
    "env",
    "tolerations",
    "taints",
    "ownerReferences",
    "imagePullSecrets",
)
ROOT_OBJECTS = ("metadata", "spec", "status")  # deeper down, `status` is a text in conditions
OBJECTS = ("resources", "securityContext", "valueFrom", "secretKeyRef")
EVICTION_PATIENCE = 300
_WORDS: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}


def read_object(resource: Resource, body: bytes) -> Json:
    """Parse a body into an object of the resource's kind."""
    try:
        obj = json.loads(body)
    except ValueError as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): couldn't get version/kind; "
            f"json parse error: {error}"
        ) from error
    if not isinstance(obj, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if obj.pop(field, wanted) != wanted:
            raise bad_request(
                f"the API version in the data does not match the expected API version "
                f"({resource.api_version}, Kind={resource.kind})"
            )
    check_types(resource, obj)
    obj.setdefault("metadata", {})
    return obj


def check_types(resource: Resource, obj: Json) -> None:
    """Refuse fields of the wrong JSON type, as decoding into typed structs does."""
    for key in ROOT_OBJECTS:
        _expect(resource, obj.get(key), dict, f"{resource.kind}.{key}")
    _walk(resource, obj, resource.kind)
    for container in (obj.get("spec") or {}).get("containers") or ():
        for part in ("limits", "requests"):
            for amount in ((container.get("resources") or {}).get(part) or {}).values():
                if parse_quantity(amount) is None:
                    raise _undecodable(resource, COMPLAINT)
    if resource is SECRETS:
        for value in (obj.get("data") or {}).values():
            _check_base64(resource, value)


def with_defaults(resource: Resource, obj: Json) -> Json:
    """Fill in what the server fills in, so that a change is compared with the same shape."""
    full: Json = clone(obj)
    if resource is PODS:
        _default_pod(full)
    if resource is SECRETS:
        plain = full.pop("stringData", None) or {}
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        if encoded or full.get("data"):
            full["data"] = {**(full.get("data") or {}), **encoded}
        full.setdefault("type", "Opaque")
    return full


def _default_pod(pod: Json) -> None:
    spec = pod.setdefault("spec", {})
    if spec is None:
        return
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    for container in spec.get("containers") or ():
        _default_container(container)
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            each.get("effect") in (None, "", "NoExecute") and each.get("key") in (None, "", key)
            for each in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": EVICTION_PATIENCE,
                }
            )


def _default_container(container: Json) -> None:
    image = str(container.get("image") or "")
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    always = "@" not in image and tag in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if always else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    for name, amount in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(name, amount)


def _walk(resource: Resource, value: Any, path: str) -> None:
    if isinstance(value, list):
        for item in value:
            _walk(resource, item, path)
        return
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        here = f"{path}.{key}"
        if item is None:
            continue
        if key in MAPS_OF_TEXT:
            _expect(resource, item, dict, here)
            for text in item.values():
                _expect(resource, text, str, here)
            continue
        for keys, wanted in ((TEXTS, str), (NUMBERS, int), (SWITCHES, bool), (LISTS, list), (OBJECTS, dict)):
            if key in keys:
                _expect(resource, item, wanted, here)
        _walk(resource, item, here)


def _expect(resource: Resource, value: object, wanted: type, path: str) -> None:
    if value is None:
        return
    right = isinstance(value, wanted) and not (wanted is int and isinstance(value, bool))
    if not right:
        word = _WORDS.get(type(value), "value")
        go = {str: "string", int: "int64", bool: "bool", list: "[]", dict: "map[string]string"}[wanted]
        raise _undecodable(
            resource, f"json: cannot unmarshal {word} into Go struct field {path} of type {go}"
        )


def _check_base64(resource: Resource, value: str) -> None:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _undecodable(resource, "illegal base64 data at input byte 0") from error


def _undecodable(resource: Resource, why: str) -> Exception:
    return bad_request(
        f'{resource.kind} in version "{resource.api_version}" cannot be handled as a {resource.kind}: {why}'
    )
