"""Label and field selectors of list and watch requests."""

import re
from collections.abc import Callable, Mapping

from controller.simulators.cluster.objects import Json
from controller.simulators.cluster.status import bad_request

Test = Callable[[Json], bool]

COMMON_FIELDS = ("metadata.name", "metadata.namespace")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.hostNetwork", "status.phase"),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "nodes": ("spec.unschedulable",),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
}
NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
KEY = rf"(?:{NAME}/)?{NAME}"
_SET = re.compile(rf"({KEY})\s+(in|notin)\s+\(([^)]*)\)")
_EQUAL = re.compile(rf"({KEY})\s*(!=|==|=)\s*({NAME})?")
_EXISTS = re.compile(rf"(!?)\s*({KEY})")


def label_test(text: str) -> Test | None:
    """Read a labelSelector; None when it selects everything."""
    rules = [_label_rule(part.strip()) for part in _split(text) if part.strip()]
    if not rules:
        return None
    return lambda obj: all(rule(obj["metadata"].get("labels") or {}) for rule in rules)


def field_test(plural: str, text: str) -> Test | None:
    """Read a fieldSelector; unknown fields are refused as the API server does."""
    rules: list[tuple[tuple[str, ...], bool, str]] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*([^=!\s]+)\s*(!=|==|=)\s*(.*?)\s*", part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        name, operator, value = match.groups()
        if name not in (*COMMON_FIELDS, *FIELDS[plural]):
            raise bad_request(f"field label not supported: {name}")
        rules.append((tuple(name.split(".")), operator != "!=", value))
    if not rules:
        return None
    return lambda obj: all((_field(obj, path) == value) is equal for path, equal, value in rules)


def _field(obj: Json, path: tuple[str, ...]) -> str:
    value: object = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return str(value.get("component", ""))  # `source` of an event means its component
    return "" if value is None else str(value)


def _split(text: str) -> list[str]:
    """Cut at commas outside of parentheses."""
    return re.split(r",(?![^(]*\))", text)


def _label_rule(part: str) -> Callable[[Mapping[str, str]], bool]:
    if match := _SET.fullmatch(part):
        key, operator, listed = match.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUAL.fullmatch(part):
        key, operator, wanted = match[1], match[2], match[3] or ""
        if operator == "!=":
            return lambda labels: labels.get(key) != wanted
        return lambda labels: labels.get(key) == wanted
    if match := _EXISTS.fullmatch(part):
        absent, key = bool(match[1]), match[2]
        return lambda labels: (key in labels) is not absent
    raise bad_request(f"unable to parse requirement: found '{part}', expected: identifier or '!'")
