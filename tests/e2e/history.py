"""What the API server says has happened to the pods of a namespace: every event of a watch, in order."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from tests.e2e.systems import Json, System

ENDED = ("Succeeded", "Failed")
RETRY = 0.2


@dataclass(slots=True)
class History:
    """The events so far."""

    events: list[tuple[str, Json]] = field(default_factory=list)

    @property
    def created(self) -> list[str]:
        """The names of all pods there ever were."""
        return [pod["metadata"]["name"] for kind, pod in self.events if kind == "ADDED"]

    def most(self, group: Callable[[Json], str]) -> Counter[str]:
        """The most pods that lived at once in each group; the empty group is left out."""
        most: Counter[str] = Counter()
        for live in self._moments():
            for name, count in Counter(group(pod) for pod in live.values()).items():
                most[name] = max(most[name], count)
        del most[""]
        return most

    def _moments(self) -> Iterator[dict[str, Json]]:
        live: dict[str, Json] = {}
        for kind, pod in self.events:
            name = pod["metadata"]["name"]
            if kind == "DELETED" or pod["status"].get("phase") in ENDED:
                live.pop(name, None)
            else:
                live[name] = pod
            yield live


def node_of(pod: Json) -> str:
    """Where a pod is placed; empty while it is not."""
    return str(pod["spec"].get("nodeName", ""))


@asynccontextmanager
async def recorded(system: System) -> AsyncIterator[History]:
    """Record everything that happens to the namespace's pods, also over breaks of the connection."""
    history = History()
    first = (await system.client.get(system.path("pods"))).raise_for_status().json()
    task = asyncio.create_task(_record(system, history, str(first["metadata"]["resourceVersion"])))
    try:
        yield history
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _record(system: System, history: History, version: str) -> None:
    while True:
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
        try:
            async with system.client.stream("GET", system.path("pods"), params=query, timeout=None) as answer:
                answer.raise_for_status()
                async for line in answer.aiter_lines():
                    event = json.loads(line)
                    assert event["type"] != "ERROR", event
                    history.events.append((event["type"], event["object"]))
                    version = event["object"]["metadata"]["resourceVersion"]
        except httpx.HTTPError:
            await asyncio.sleep(RETRY)  # the API server is away
