"""Refusing what a real API server refuses, in its words: metadata, Secrets, and the dispatch by kind.

Called by `writes` after defaulting. A mistake in an object is a Cause of a 422; what cannot be decoded at all
is a 400, see `decode`. The pod's own rules are in `pod_validation`.
"""

import re

from controller.simulators.cluster.objects import EVENTS, NODES, PODS, SECRETS, Json, Resource
from controller.simulators.cluster.pod_validation import pod_mistakes, pod_update_mistakes
from controller.simulators.cluster.status import Cause

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
SUBDOMAIN_COMPLAINT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{SUBDOMAIN}')"
)
QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
QUALIFIED_COMPLAINT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{QUALIFIED}')"
)
LABEL_COMPLAINT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    f"for validation is '({QUALIFIED})?')"
)
CONFIG_KEY = r"[-._a-zA-Z0-9]+"
CONFIG_KEY_COMPLAINT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    f"'KEY_NAME',  or 'key-name', regex used for validation is '{CONFIG_KEY}')"
)
NAME_LENGTH, LABEL_LENGTH, ANNOTATIONS_SIZE, SECRET_SIZE = 253, 63, 262_144, 1_048_576
OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")


def mistakes(resource: Resource, obj: Json) -> list[Cause]:
    """All mistakes of a new object."""
    found = _metadata(resource, obj["metadata"])
    if resource is PODS:
        found += pod_mistakes(obj)
    if resource is SECRETS:
        found += _secret(obj)
    if resource is EVENTS and obj["metadata"].get("namespace") != obj.get("involvedObject", {}).get(
        "namespace"
    ):
        found.append(_invalid("involvedObject.namespace", "", "does not match event.namespace"))
    return found


def update_mistakes(resource: Resource, old: Json, new: Json) -> list[Cause]:
    """All mistakes of a change."""
    found = _metadata(resource, new["metadata"])
    if resource is PODS:
        found += pod_update_mistakes(old, new)
    if resource is SECRETS:
        found += _secret(new)
        if old.get("type") != new.get("type"):
            found.append(_invalid("type", new.get("type"), "field is immutable"))
        if old.get("immutable") and old.get("data") != new.get("data"):
            found.append(
                Cause("FieldValueForbidden", "data", "Forbidden: field is immutable when `immutable` is set")
            )
    if resource is NODES:
        taints = [
            (taint.get("key"), taint.get("effect")) for taint in new.get("spec", {}).get("taints") or ()
        ]
        if len(set(taints)) != len(taints):
            found.append(Cause("FieldValueDuplicate", "metadata.taints", "Duplicate value"))
    return found


def _invalid(field: str, value: object, why: str) -> Cause:
    shown = "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown}: {why}")


def _metadata(resource: Resource, metadata: Json) -> list[Cause]:
    found: list[Cause] = []
    name = metadata.get("name") or ""
    if not name:
        found.append(
            Cause("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")
        )
    elif len(name) > NAME_LENGTH:
        found.append(_invalid("metadata.name", name, f"must be no more than {NAME_LENGTH} bytes"))
    elif not re.fullmatch(SUBDOMAIN, name) and resource is not EVENTS:
        found.append(_invalid("metadata.name", name, SUBDOMAIN_COMPLAINT))
    for key, value in (metadata.get("labels") or {}).items():
        found += _qualified("metadata.labels", key)
        if len(value) > LABEL_LENGTH:
            found.append(_invalid("metadata.labels", value, f"must be no more than {LABEL_LENGTH} bytes"))
        elif value and not re.fullmatch(QUALIFIED, value):
            found.append(_invalid("metadata.labels", value, LABEL_COMPLAINT))
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        found += _qualified("metadata.annotations", key.lower())
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_SIZE:
        found.append(
            Cause(
                "FieldValueTooLong",
                "metadata.annotations",
                f"Too long: may not be more than {ANNOTATIONS_SIZE} bytes",
            )
        )
    for owner in metadata.get("ownerReferences") or ():
        found += [
            _invalid(f"metadata.ownerReferences.{field}", "", "must not be empty")
            for field in OWNER_FIELDS
            if not owner.get(field)
        ]
    return found


def _qualified(field: str, key: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not re.fullmatch(SUBDOMAIN, prefix):
        return [_invalid(field, key, f"prefix part {SUBDOMAIN_COMPLAINT}")]
    if not name:
        return [_invalid(field, key, "name part must be non-empty")]
    if len(name) > LABEL_LENGTH:
        return [_invalid(field, key, f"name part must be no more than {LABEL_LENGTH} bytes")]
    if not re.fullmatch(QUALIFIED, name):
        return [_invalid(field, key, QUALIFIED_COMPLAINT)]
    return []


def _secret(secret: Json) -> list[Cause]:
    data = secret.get("data") or {}
    found = [
        _invalid(f"data[{key}]", key, CONFIG_KEY_COMPLAINT)
        for key in data
        if not re.fullmatch(CONFIG_KEY, key)
    ]
    if sum(len(value) * 3 // 4 for value in data.values()) > SECRET_SIZE:
        found.append(
            Cause("FieldValueTooLong", "data", f"Too long: may not be more than {SECRET_SIZE} bytes")
        )
    return found
