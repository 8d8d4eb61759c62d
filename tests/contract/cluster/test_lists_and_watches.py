"""Lists over pages and selectors, and watches: what they show, resume and refuse."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.contract.cluster.conftest import Api
from tests.contract.cluster.objects import Json, a_pod, a_secret

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Events:
    """An open watch, read event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()

    async def next(self) -> tuple[str, Json]:
        event = json.loads(await anext(self._lines))
        return event["type"], event["object"]

    async def named(self) -> tuple[str, str]:
        kind, obj = await self.next()
        return kind, obj["metadata"]["name"]

    async def rest(self) -> list[str]:
        return [json.loads(line)["type"] async for line in self._lines]


@asynccontextmanager
async def watching(api: Api, version: str, **query: str) -> AsyncIterator[Events]:
    params = {"watch": "true", "resourceVersion": version, **query}
    async with api.client.stream("GET", api.path("pods"), params=params) as answer:
        assert answer.status_code == 200
        yield Events(answer)


async def now(api: Api) -> str:
    return str((await api.listed("pods"))["metadata"]["resourceVersion"])


def names(page: Json) -> list[str]:
    return [item["metadata"]["name"] for item in page["items"]]


async def test_pages_show_the_state_of_the_first(api: Api) -> None:
    for number in range(5):
        await api.create("pods", a_pod(f"p-{number}"))
    first = await api.listed("pods", limit=2)
    assert first["metadata"]["remainingItemCount"] == 3
    await api.client.delete(api.path("pods", "p-4"))
    await api.create("pods", a_pod("p-3a"))
    second = await api.listed("pods", **{"limit": 2, "continue": first["metadata"]["continue"]})
    third = await api.listed("pods", **{"limit": 2, "continue": second["metadata"]["continue"]})
    assert [*names(first), *names(second), *names(third)] == [f"p-{number}" for number in range(5)]
    assert third["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in third["metadata"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [("app=x", ["a", "b"]), ("app!=x", ["c"]), ("app in (x,y),tier", ["b"]), ("!tier", ["a", "c"])],
)
async def test_label_selectors(api: Api, selector: str, found: list[str]) -> None:
    labels: dict[str, Json] = {"a": {"app": "x"}, "b": {"app": "x", "tier": "1"}, "c": {"app": "z"}}
    for name, own in labels.items():
        await api.create("pods", a_pod(name, labels=own))
    assert names(await api.listed("pods", labelSelector=selector)) == found


async def test_field_selectors_and_their_limits(api: Api) -> None:
    await api.create("pods", a_pod("one", nodeName="n-1"))
    await api.create("pods", a_pod("two"))
    assert names(await api.listed("pods", fieldSelector="spec.nodeName=n-1")) == ["one"]
    assert names(await api.listed("pods", fieldSelector="metadata.name=two")) == ["two"]
    answer = await api.client.get(api.path("pods"), params={"fieldSelector": "spec.colour=red"})
    assert answer.status_code == 400


async def test_metadata_alone_leaves_the_data_out(api: Api) -> None:
    await api.create("secrets", a_secret("one", key="value"))
    answer = await api.client.get(api.path("secrets"), headers={"accept": METADATA})
    assert answer.json()["kind"] == "PartialObjectMetadataList"
    assert set(answer.json()["items"][0]) == {"kind", "apiVersion", "metadata"}


async def test_a_watch_tells_every_change_after_its_version(api: Api) -> None:
    version = await now(api)
    await api.create("pods", a_pod("one"))
    async with watching(api, version) as events:
        assert await events.named() == ("ADDED", "one")
        await api.patch("pods", "one", {"metadata": {"labels": {"a": "b"}}})
        assert await events.named() == ("MODIFIED", "one")
        await api.client.delete(api.path("pods", "one"))
        assert await events.named() == ("MODIFIED", "one")  # now it has a deletionTimestamp
        assert await events.named() == ("DELETED", "one")


async def test_a_watch_without_a_version_begins_with_what_is_there(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    async with watching(api, "") as events:
        assert await events.named() == ("ADDED", "one")


async def test_a_watch_with_a_selector_sees_objects_come_and_go(api: Api) -> None:
    version = await now(api)
    async with watching(api, version, labelSelector="a=b") as events:
        await api.create("pods", a_pod("one"))
        await api.patch("pods", "one", {"metadata": {"labels": {"a": "b"}}})
        assert await events.named() == ("ADDED", "one")
        await api.patch("pods", "one", {"metadata": {"labels": {"a": None}}})
        assert await events.named() == ("DELETED", "one")


async def test_a_watch_ends_in_good_order_when_its_time_is_up(api: Api) -> None:
    version = await now(api)
    await api.create("secrets", a_secret("moves-the-version"))
    async with watching(api, version, timeoutSeconds="1", allowWatchBookmarks="true") as events:
        assert await events.rest() in ([], ["BOOKMARK"])


async def test_a_bookmark_tells_how_far_the_watch_is(api: Api) -> None:
    version = await now(api)
    query = {"allowWatchBookmarks": "true", "timeoutSeconds": "4", "labelSelector": "nobody=has-it"}
    async with watching(api, version, **query) as events:
        pod = await api.create("pods", a_pod("one"))
        kind, obj = await events.next()
        assert (kind, obj["kind"]) == ("BOOKMARK", "Pod")
        assert int(obj["metadata"]["resourceVersion"]) >= int(pod["metadata"]["resourceVersion"])


async def test_a_version_that_was_forgotten_is_gone(api: Api) -> None:
    await api.create("pods", a_pod("one"))
    await api.server.compact()
    async with watching(api, "1") as events:
        kind, status = await events.next()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
        assert await events.rest() == []


async def test_a_page_of_a_forgotten_list_is_gone(api: Api) -> None:
    for name in ("one", "two"):
        await api.create("pods", a_pod(name))
    token = (await api.listed("pods", limit=1))["metadata"]["continue"]
    await api.create("pods", a_pod("three"))
    await api.server.compact()
    answer = await api.client.get(api.path("pods"), params={"limit": 1, "continue": aged(token)})
    assert (answer.status_code, answer.json()["reason"]) == (410, "Expired")


def aged(token: str) -> str:
    """The same place in a list of the very beginning, which no cache holds."""
    content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return base64.urlsafe_b64encode(json.dumps({**content, "rv": 1}).encode()).decode().rstrip("=")
