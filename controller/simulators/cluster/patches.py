"""The three patch formats of the API server, applied to JSON."""

import json
from collections.abc import Mapping
from typing import Any

from controller.simulators.cluster.objects import Json, clone
from controller.simulators.cluster.status import ApiError, bad_request

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
ACCEPTED = (JSON_PATCH, MERGE_PATCH, "application/apply-patch+yaml", STRATEGIC_PATCH)

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "ownerReferences": "uid",
    "conditions": "type",
    "addresses": "type",
    "taints": "key",
    "hostAliases": "ip",
}
"""The lists that a strategic merge joins by a key; all others it replaces."""


def apply_patch(obj: Json, content_type: str, body: bytes) -> Json:
    """Apply a patch to a copy of the object."""
    kind = content_type.partition(";")[0].strip()
    if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        listed = ", ".join(ACCEPTED)
        raise ApiError(
            415,
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format - accepted media types include: {listed}",
        )
    try:
        patch = json.loads(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if kind == JSON_PATCH:
        return json_patch(obj, patch)
    if not isinstance(patch, dict):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}"
        )
    merged = merge_patch(obj, patch) if kind == MERGE_PATCH else strategic_patch(obj, patch)
    return dict(merged)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return clone(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_patch(target: Any, patch: Json) -> Json:
    """As a merge patch, but lists with a merge key are joined and `$patch` directives obeyed."""
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: clone(value) for key, value in patch.items() if key != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith(("$patch", "$setElementOrder/", "$retainKeys", "$deleteFromPrimitiveList/")):
            continue
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = strategic_patch(merged.get(key), value)
        elif isinstance(value, list) and key in MERGE_KEYS:
            merged[key] = _join(merged.get(key) or [], value, MERGE_KEYS[key])
        else:
            merged[key] = clone(value)
    return merged


def _join(old: list[Json], patch: list[Json], merge_key: str) -> list[Json]:
    if any(item.get("$patch") == "replace" for item in patch):
        return [clone(item) for item in patch if "$patch" not in item]
    joined = list(old)
    for item in patch:
        if merge_key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {merge_key}")
        place = next((at for at, each in enumerate(joined) if each.get(merge_key) == item[merge_key]), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del joined[place]
        elif place is None:
            joined.append(strategic_patch({}, item))
        else:
            joined[place] = strategic_patch(joined[place], item)
    return joined


def json_patch(obj: Json, steps: Any) -> Json:
    """RFC 6902."""
    if not isinstance(steps, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    fresh: Json = clone(obj)
    for step in steps:
        try:
            fresh = _step(fresh, step)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise ApiError(
                422, "Invalid", "the server rejected our request due to an error in our request", {}
            ) from error
    return fresh


def _step(root: Any, step: Json) -> Any:
    operation, path = step["op"], _pointer(step["path"])
    match operation:
        case "test":
            if _look(root, path) != step.get("value"):
                raise ValueError(f"testing value {step['path']} failed")
        case "remove":
            _take(root, path)
        case "add":
            return _put(root, path, clone(step["value"]), insert=True)
        case "replace":
            _look(root, path)
            return _put(root, path, clone(step["value"]), insert=False)
        case "move":
            return _put(root, path, _take(root, _pointer(step["from"])), insert=True)
        case "copy":
            return _put(root, path, clone(_look(root, _pointer(step["from"]))), insert=True)
        case _:
            raise ValueError(f"unexpected kind: {operation}")
    return root


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(f"no pointer: {text}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _look(root: Any, path: list[str]) -> Any:
    for part in path:
        root = root[int(part)] if isinstance(root, list) else root[part]
    return root


def _take(root: Any, path: list[str]) -> Any:
    parent = _look(root, path[:-1])
    return parent.pop(int(path[-1]) if isinstance(parent, list) else path[-1])


def _put(root: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    parent = _look(root, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
        return root
    place = len(parent) if path[-1] == "-" else int(path[-1])
    if insert:
        parent.insert(place, value)
    else:
        parent[place] = value
    return root
