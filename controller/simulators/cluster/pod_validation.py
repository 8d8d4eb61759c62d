"""The rules of a pod's spec, in the API server's words: what a new one must have, what a change may touch."""

import re
from collections.abc import Iterator

from controller.simulators.cluster.objects import Json, clone
from controller.simulators.cluster.quantities import parse_quantity
from controller.simulators.cluster.status import Cause

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
MAX_DEADLINE = 2_147_483_647
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_COMPLAINT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    f"end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
SPEC_IS_FIXED = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def pod_mistakes(pod: Json) -> list[Cause]:
    """All mistakes of a new pod's spec, which has its defaults already."""
    spec = pod.get("spec") or {}
    found: list[Cause] = []
    containers = spec.get("containers") or []
    if not containers:
        found.append(_required("spec.containers"))
    names: set[str] = set()
    for index, container in enumerate(containers):
        where = f"spec.containers[{index}]"
        found += _container(where, container)
        name = container.get("name", "")
        if name and name in names:
            found.append(Cause("FieldValueDuplicate", f"{where}.name", f'Duplicate value: "{name}"'))
        names.add(name)
    found += _choice("spec.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    found += _choice("spec.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES)
    found += _deadline(spec.get("activeDeadlineSeconds"))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        where = f"spec.tolerations[{index}]"
        if toleration.get("effect"):
            found += _choice(f"{where}.effect", toleration["effect"], TAINT_EFFECTS)
        found += _choice(f"{where}.operator", toleration.get("operator") or "Equal", ("Equal", "Exists"))
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            why = "value must be empty when `operator` is 'Exists'"
            found.append(_invalid(f"{where}.operator", toleration["value"], why))
    found += _affinity(spec.get("affinity") or {})
    return found


def pod_update_mistakes(old: Json, new: Json) -> list[Cause]:
    """All mistakes of a changed spec."""
    before, after = old["spec"], new.get("spec") or {}
    found = _deadline(after.get("activeDeadlineSeconds"))
    earlier, later = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if not found and earlier is not None:
        if later is None:
            why = "must not update from a positive integer to nil value"
            return [_invalid("spec.activeDeadlineSeconds", None, why)]
        if later > earlier:
            return [
                _invalid("spec.activeDeadlineSeconds", later, "must be less than or equal to previous value")
            ]
    kept = [_bare(each) for each in after.get("tolerations") or ()]
    if any(_bare(each) not in kept for each in before.get("tolerations") or ()):
        why = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        found.append(Cause("FieldValueForbidden", "spec.tolerations", why))
    for index, container in enumerate(after.get("containers") or ()):
        if not container.get("image"):
            found.append(_required(f"spec.containers[{index}].image"))
    if _fixed(before) != _fixed(after):
        found.append(Cause("FieldValueForbidden", "spec", SPEC_IS_FIXED))
    return found


def _bare(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _fixed(spec: Json) -> Json:
    """The part of a spec that may never change."""
    fixed: Json = clone(spec)
    for field in ("activeDeadlineSeconds", "tolerations"):
        fixed.pop(field, None)
    for container in fixed.get("containers") or ():
        container.pop("image", None)
    return fixed


def _required(field: str) -> Cause:
    return Cause("FieldValueRequired", field, "Required value")


def _invalid(field: str, value: object, why: str) -> Cause:
    shown = "null" if value is None else f'"{value}"' if isinstance(value, str) else str(value)
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown}: {why}")


def _choice(field: str, value: object, allowed: tuple[str, ...]) -> list[Cause]:
    if value in allowed:
        return []
    listed = ", ".join(f'"{each}"' for each in allowed)
    return [
        Cause("FieldValueNotSupported", field, f'Unsupported value: "{value}": supported values: {listed}')
    ]


def _deadline(seconds: int | None) -> list[Cause]:
    if seconds is None or 1 <= seconds <= MAX_DEADLINE:
        return []
    why = f"must be between 1 and {MAX_DEADLINE}, inclusive"
    return [_invalid("spec.activeDeadlineSeconds", seconds, why)]


def _container(where: str, container: Json) -> Iterator[Cause]:
    name = container.get("name") or ""
    if not name:
        yield _required(f"{where}.name")
    elif not re.fullmatch(LABEL, name) or len(name) > 63:
        yield _invalid(f"{where}.name", name, LABEL_COMPLAINT)
    image = container.get("image") or ""
    if not image:
        yield _required(f"{where}.image")
    elif image != image.strip():
        yield _invalid(f"{where}.image", image, "must not have leading or trailing whitespace")
    yield from _choice(f"{where}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES)
    for index, variable in enumerate(container.get("env") or ()):
        yield from _variable(f"{where}.env[{index}]", variable)
    yield from _resources(f"{where}.resources", container.get("resources") or {})


def _variable(where: str, variable: Json) -> Iterator[Cause]:
    if not variable.get("name"):
        yield _required(f"{where}.name")
    source = variable.get("valueFrom")
    if source is None:
        return
    given = [kind for kind in ENV_SOURCES if source.get(kind) is not None]
    if not given:
        listed = ", ".join(f"`{kind}`" for kind in ENV_SOURCES)
        yield _invalid(f"{where}.valueFrom", "", f"must specify one of: {listed}")
    elif variable.get("value"):
        yield _invalid(f"{where}.valueFrom", "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield _invalid(f"{where}.valueFrom", "", "may not have more than one field specified at a time")
    for kind in given:
        if kind in ("secretKeyRef", "configMapKeyRef"):
            reference = source[kind]
            for field in ("name", "key"):
                if not reference.get(field):
                    yield _required(f"{where}.valueFrom.{kind}.{field}")


def _resources(where: str, resources: Json) -> Iterator[Cause]:
    limits = resources.get("limits") or {}
    for part in ("limits", "requests"):
        for name, text in (resources.get(part) or {}).items():
            amount = parse_quantity(text)
            field = f"{where}.{part}[{name}]"
            if amount is None or amount < 0:
                yield _invalid(field, str(text), "must be greater than or equal to 0")
            elif "/" in name and amount != amount.to_integral_value():
                yield _invalid(field, str(text), "must be an integer")
    for name, text in (resources.get("requests") or {}).items():
        wanted, limit = parse_quantity(text), parse_quantity(limits.get(name))
        if "/" in name and limit is None:
            yield Cause(
                "FieldValueRequired",
                f"{where}.limits",
                "Required value: Limit must be set for non overcommitable resources",
            )
        elif wanted is None or limit is None:
            continue
        elif "/" in name and wanted != limit:
            yield _invalid(f"{where}.requests", str(text), f"must be equal to {name} limit of {limits[name]}")
        elif wanted > limit:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield _invalid(f"{where}.requests", str(text), why)


def _affinity(affinity: Json) -> Iterator[Cause]:
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return
    where = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    terms = required.get("nodeSelectorTerms") or []
    if not terms:
        yield Cause("FieldValueRequired", where, "Required value: must have at least one node selector term")
    for index, term in enumerate(terms):
        for part in ("matchExpressions", "matchFields"):
            for place, rule in enumerate(term.get(part) or ()):
                yield from _node_rule(f"{where}[{index}].{part}[{place}]", part, rule)


def _node_rule(where: str, part: str, rule: Json) -> Iterator[Cause]:
    operator, values = rule.get("operator"), rule.get("values") or []
    fields_only = part == "matchFields"
    yield from _choice(f"{where}.operator", operator, ("In", "NotIn") if fields_only else NODE_OPERATORS)
    if fields_only and len(values) != 1:
        why = "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield Cause("FieldValueRequired", f"{where}.values", why)
    elif fields_only and rule.get("key") != "metadata.name":
        yield _invalid(f"{where}.key", rule.get("key"), "not a valid field selector key")
    elif operator in ("In", "NotIn") and not values:
        why = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
        yield Cause("FieldValueRequired", f"{where}.values", why)
    elif operator in ("Exists", "DoesNotExist") and values:
        why = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield Cause("FieldValueForbidden", f"{where}.values", why)
