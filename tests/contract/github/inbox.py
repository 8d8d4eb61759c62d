"""A webhook receiver that keeps what it was sent."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as it came."""

    headers: Mapping[str, str]
    body: bytes
    payload: Mapping[str, Any]

    @property
    def guid(self) -> str:
        """The delivery's GUID."""
        return self.headers["x-github-delivery"]

    @property
    def event(self) -> str:
        """The event's name."""
        return self.headers["x-github-event"]

    @property
    def action(self) -> str | None:
        """What happened."""
        return self.payload.get("action")

    @property
    def job_id(self) -> int | None:
        """The job it is about, if any."""
        job = self.payload.get("workflow_job")
        return job["id"] if job else None


class Inbox:
    """Answers with `status`, and only while `open` is set."""

    def __init__(self) -> None:
        self.status = 200
        self.open = asyncio.Event()
        self.open.set()
        self.received: list[Received] = []
        self.app = Starlette(routes=[Route("/webhook", self._receive, methods=["POST"])])

    def actions(self, job_id: int) -> list[str | None]:
        """What was told of a job, in the order of arrival."""
        return [each.action for each in self.received if each.job_id == job_id]

    def told(self, job_id: int, action: str) -> list[Received]:
        """The deliveries of one step of a job."""
        return [each for each in self.received if each.job_id == job_id and each.action == action]

    async def _receive(self, request: Request) -> Response:
        body = await request.body()
        self.received.append(Received(dict(request.headers), body, await request.json()))
        await self.open.wait()
        return Response("seen", self.status)
