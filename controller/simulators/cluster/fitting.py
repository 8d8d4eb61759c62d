"""Whether a pod may go onto a node: selector, affinity, taints, cordon, resources. Pure; `scheduler` asks here."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from controller.simulators.cluster.objects import Json
from controller.simulators.cluster.quantities import parse_quantity

Amounts = Mapping[str, Decimal]
NO_AMOUNT = Decimal(0)
KEEPS_OFF = ("NoSchedule", "NoExecute")


def requests_of(pod: Json) -> dict[str, Decimal]:
    """What a pod takes of its node; every pod takes one of `pods`."""
    total: dict[str, Decimal] = {"pods": Decimal(1)}
    for container in pod["spec"]["containers"]:
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, NO_AMOUNT) + (parse_quantity(text) or NO_AMOUNT)
    return total


def allocatable_of(node: Json) -> dict[str, Decimal]:
    """What a node offers."""
    offered = node.get("status", {}).get("allocatable") or {}
    return {name: parse_quantity(text) or NO_AMOUNT for name, text in offered.items()}


def obstacle(pod: Json, node: Json) -> str:
    """Why the pod may not go there, resources aside, in the scheduler's words; empty if it may."""
    spec = node.get("spec", {})
    tolerations = pod["spec"].get("tolerations") or []
    if spec.get("unschedulable") and not tolerated(
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, tolerations
    ):
        return "node(s) were unschedulable"
    for taint in spec.get("taints") or ():
        if taint.get("effect") in KEEPS_OFF and not tolerated(taint, tolerations):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    if not _selected(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def shortages(wanted: Amounts, offered: Amounts, used: Amounts) -> list[str]:
    """The resources that do not suffice, in the scheduler's words."""
    short = [
        name
        for name, amount in wanted.items()
        if amount > offered.get(name, NO_AMOUNT) - used.get(name, NO_AMOUNT)
    ]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


def tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    """Whether any of the tolerations covers the taint."""
    return any(covers(toleration, taint) for toleration in tolerations)


def covers(toleration: Json, taint: Json) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator") == "Exists":
        return key in ("", taint["key"])
    return key == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def _selected(pod: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels") or {}
    spec = pod["spec"]
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term(term, node, labels) for term in required.get("nodeSelectorTerms") or ())


def _term(term: Json, node: Json, labels: Mapping[str, str]) -> bool:
    """A term without any rule matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    named = {"metadata.name": node["metadata"]["name"]}
    return all(_rule(rule, labels) for rule in expressions) and all(_rule(rule, named) for rule in fields)


def _rule(rule: Json, values: Mapping[str, str]) -> bool:
    there, wanted = values.get(rule["key"]), rule.get("values") or []
    match rule["operator"]:
        case "In":
            return there in wanted
        case "NotIn":
            return there not in wanted
        case "Exists":
            return there is not None
        case "DoesNotExist":
            return there is None
        case "Gt":
            return _number(there) > int(wanted[0]) if _is_number(there) else False
        case _:
            return _number(there) < int(wanted[0]) if _is_number(there) else False


def _is_number(text: str | None) -> bool:
    return text is not None and text.lstrip("-").isdigit()


def _number(text: str | None) -> int:
    return int(text or 0)
