"""What the API server says has happened to the pods of a namespace: every event of a watch, in order."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
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
    present: dict[str, Json] = field(default_factory=dict)
    version: str = ""  # up to which everything is known; empty when a list must tell it anew
    gaps: int = 0  # how often a list had to tell it: what happened before is not known then

    def add(self, kind: str, pod: Json) -> None:
        """Note one event."""
        self.events.append((kind, pod))
        self.version = pod["metadata"]["resourceVersion"]
        self.present[pod["metadata"]["name"]] = pod
        if kind == "DELETED":
            del self.present[pod["metadata"]["name"]]

    @property
    def created(self) -> list[str]:
        """The names of all pods there ever were."""
        return [pod["metadata"]["name"] for kind, pod in self.events if kind == "ADDED"]

    def most(self, group: Callable[[Json], str]) -> Counter[str]:
        """The most pods that lived at once in each group; the empty group is left out."""
        most: Counter[str] = Counter()
        live: dict[str, str] = {}  # pod → its group
        counts: Counter[str] = Counter()
        for kind, pod in self.events:
            name = pod["metadata"]["name"]
            counts[live.pop(name, "")] -= 1
            if kind != "DELETED" and pod["status"].get("phase") not in ENDED:
                live[name] = where = group(pod)
                counts[where] += 1
                most[where] = max(most[where], counts[where])
        del most[""]
        return most


def node_of(pod: Json) -> str:
    """Where a pod is placed; empty while it is not."""
    return str(pod["spec"].get("nodeName", ""))


@asynccontextmanager
async def recorded(system: System) -> AsyncIterator[History]:
    """Record everything that happens to the namespace's pods, also over breaks of the connection."""
    history = History()
    await _list(system, history)
    task = asyncio.create_task(_record(system, history))
    try:
        yield history
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _record(system: System, history: History) -> None:
    while True:
        try:
            if not history.version:
                await _list(system, history)
            await _watch(system, history)
        except httpx.HTTPError:
            await asyncio.sleep(RETRY)  # the API server is away


async def _watch(system: System, history: History) -> None:
    """Record until the connection ends, or the server does not know our version any more."""
    query = {"watch": "true", "resourceVersion": history.version, "timeoutSeconds": "3600"}
    async with system.client.stream("GET", system.path("pods"), params=query, timeout=None) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            event = json.loads(line)
            if event["type"] == "ERROR":
                history.version = ""
                history.gaps += 1
                return
            history.add(event["type"], event["object"])


async def _list(system: System, history: History) -> None:
    """Make up for what a watch has missed."""
    page = (await system.client.get(system.path("pods"))).raise_for_status().json()
    there = {pod["metadata"]["name"]: pod for pod in page["items"]}
    for name, pod in list(history.present.items()):
        if name not in there:
            history.add("DELETED", pod)
    # Those that have ended first: their successors took their places.
    for name, pod in sorted(there.items(), key=lambda each: each[1]["status"].get("phase") not in ENDED):
        history.add("MODIFIED" if name in history.present else "ADDED", pod)
    history.version = page["metadata"]["resourceVersion"]
