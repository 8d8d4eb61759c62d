"""Runners on boards that are not there: kwok says that the pods run, this does what their containers would do."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx

from controller.gateways.clock import SystemClock
from controller.simulators.cluster import Container, RunnerProgram
from tests.e2e.history import History
from tests.e2e.systems import MERGE_PATCH, Json, System

VERSION = "2.335.0"
LOOK = 0.05


class Crowd:
    """A runner for every pod that runs, each from its own Secret."""

    def __init__(self, system: System, history: History) -> None:
        self._system = system
        self._history = history
        self._program = RunnerProgram(system.github.base_url, VERSION)
        self._begun: set[str] = set()

    async def run(self) -> None:
        """Start runners until cancelled; a runner that fails fails the test."""
        seen = 0
        async with asyncio.TaskGroup() as group:
            while True:
                for kind, pod in self._history.events[seen:]:
                    seen += 1
                    name = pod["metadata"]["name"]
                    if kind != "DELETED" and pod["status"]["phase"] == "Running" and name not in self._begun:
                        self._begun.add(name)
                        group.create_task(self._serve(pod))
                await asyncio.sleep(LOOK)

    async def _serve(self, pod: Json) -> None:
        """Run one runner to its end, and have its pod end."""
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        client, status = self._system.client, self._system.path("pods", name, "status")
        answer = await persistent(lambda: client.get(self._system.path("secrets", name)))
        if answer.status_code == httpx.codes.NOT_FOUND:  # given up before it began
            await _end_pod(client, status, "Failed", 1)
            return
        config = base64.b64decode(answer.raise_for_status().json()["data"]["jitconfig"]).decode()
        container = Container(name, "", node, {"RUNNER_JITCONFIG": config}, SystemClock())
        await _end_pod(client, status, "Succeeded", await self._program.run(container))


async def persistent(ask: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """The answer, however often the connection breaks before it."""
    while True:
        try:
            return await ask()
        except httpx.TransportError:
            await asyncio.sleep(LOOK)


async def _end_pod(client: httpx.AsyncClient, path: str, phase: str, code: int) -> None:
    ended = {
        "exitCode": code,
        "reason": "Completed",
        "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    container = {
        "name": "runner",
        "image": "runner",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    patch = {"status": {"phase": phase, "containerStatuses": [container]}}
    (await persistent(lambda: client.patch(path, json=patch, headers=MERGE_PATCH))).raise_for_status()


@asynccontextmanager
async def a_crowd(system: System, history: History) -> AsyncIterator[None]:
    """Let runners run for the length of the block; one that fails ends it."""
    async with beside(Crowd(system, history).run()):
        yield


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do endless work for the length of the block; when it fails, the block ends and fails by that."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            yield
            task.cancel()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
