"""Reading objects as the API server shows them: one, a page of many, and only their metadata."""

import base64
import json
from collections.abc import Callable

from controller.simulators.cluster.objects import Json, Resource, key_of, with_kind
from controller.simulators.cluster.requests import Ask
from controller.simulators.cluster.selectors import Test, field_test, label_test
from controller.simulators.cluster.status import ApiError, bad_request, expired
from controller.simulators.cluster.store import Store

Show = Callable[[Json], Json]
META = "meta.k8s.io/v1"


def get(store: Store, ask: Ask) -> Json:
    """One object."""
    return shown_as(ask)(store.get(ask.resource, ask.place, ask.name or ""))


def selected(store: Store, ask: Ask) -> list[Json]:
    """The present objects that a request is about."""
    chosen = test_of(ask)
    return [obj for obj in store.all(ask.resource, ask.namespace) if chosen(obj)]


def list_page(store: Store, ask: Ask) -> Json:
    """A page of a list; its later pages show the state of the first."""
    chosen, limit = test_of(ask), ask.number("limit") or 0
    token = ask.query.get("continue", "")
    if token:
        version, after = _open_token(token)
        items = [obj for obj in _past(store, ask, version) if key_of(obj) > after and chosen(obj)]
    else:
        _check_version(store, ask)
        version = store.rv
        items = [obj for obj in store.all(ask.resource, ask.namespace) if chosen(obj)]
    metadata: Json = {"resourceVersion": str(version)}
    if limit and len(items) > limit:
        if not ask.query.get("labelSelector") and not ask.query.get("fieldSelector"):
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
        metadata["continue"] = _token(version, key_of(items[-1]))
    if _metadata_only(ask):
        show = shown_as(ask)
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": META,
            "metadata": metadata,
            "items": [show(obj) for obj in items],
        }
    resource = ask.resource
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "items": items,
    }


def test_of(ask: Ask) -> Test:
    """Whether an object of the right namespace is selected."""
    tests = [
        label_test(ask.query.get("labelSelector", "")),
        field_test(ask.resource.plural, ask.query.get("fieldSelector", "")),
    ]
    if ask.name is not None:
        tests.append(lambda obj: obj["metadata"]["name"] == ask.name)
    rules = [test for test in tests if test is not None]
    return lambda obj: all(rule(obj) for rule in rules)


def shown_as(ask: Ask) -> Show:
    """How single objects are written: whole, or only their metadata."""
    resource: Resource = ask.resource
    if _metadata_only(ask):
        return lambda obj: {
            "kind": "PartialObjectMetadata",
            "apiVersion": META,
            "metadata": obj["metadata"],
        }
    return lambda obj: with_kind(resource, obj)


def _metadata_only(ask: Ask) -> bool:
    first = ask.accept.partition(",")[0].replace(" ", "")
    return "as=PartialObjectMetadata" in first and "g=meta.k8s.io" in first


def _past(store: Store, ask: Ask, version: int) -> list[Json]:
    try:
        items = store.as_of(ask.resource, version)
    except ApiError as error:
        raise expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter."
        ) from error
    return [obj for obj in items if ask.namespace is None or key_of(obj)[0] == ask.namespace]


def _check_version(store: Store, ask: Ask) -> None:
    wanted = ask.number("resourceVersion")
    if wanted is not None and wanted > store.rv:
        raise ApiError(
            504,
            "Timeout",
            f"Too large resource version: {wanted}, current: {store.rv}",
            {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
            retry_after=1,
        )


def _token(version: int, last: tuple[str, str]) -> str:
    text = json.dumps({"v": META, "rv": version, "start": "/".join(last)})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _open_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = str(content["start"]).partition("/")
        return int(content["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request("continue key is not valid: unable to decode the token") from error
