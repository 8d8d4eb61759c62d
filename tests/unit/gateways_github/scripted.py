"""A GitHub that says exactly what a test tells it to, for the odd answers that a simulator would never give."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controller.domain.jobs import Entity, EntityType, Scope
from controller.gateways.github import Deadlines, GitHubGateway, Observation, RunnerGroup
from tests.clocks import ManualClock

API = "https://github.test/api/v3"
ORG = Scope("111", 7, Entity(70, "example-org", EntityType.ORGANIZATION))
OTHER_ORG = Scope("111", 8, Entity(80, "other-org", EntityType.ORGANIZATION))
PERSON = Scope("222", 9, Entity(90, "someone", EntityType.USER), "someone/project")
GROUP = RunnerGroup("RISE RISC-V Runners", "all", True)
GENEROUS = Deadlines()
SHORT = Deadlines(request=timedelta(milliseconds=20), listing=timedelta(seconds=60))

Handler = Callable[[httpx.Request], "httpx.Response | Exception"]


@cache
def private_key() -> bytes:
    """One RSA key for the whole run: making one takes long."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def answer(status: int = 200, body: Any = None, **headers: str) -> httpx.Response:
    """An answer with a JSON body; header names are written with underscores."""
    return httpx.Response(
        status,
        json={} if body is None else body,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def token_of(request: httpx.Request) -> str:
    """What a request was authorized with."""
    return request.headers["authorization"].removeprefix("Bearer ")


@dataclass
class ScriptedGitHub:
    """Mints tokens by itself; every other request goes to the test's handler."""

    clock: ManualClock
    handler: Handler = lambda request: answer(404, {"message": "Not Found"})
    mint: Handler | None = None
    requests: list[httpx.Request] = field(default_factory=list)
    mints: list[httpx.Request] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)

    @property
    def transport(self) -> httpx.MockTransport:
        """To be handed to the gateway."""
        return httpx.MockTransport(self._serve)

    def answers(self, *script: "httpx.Response | Exception") -> None:
        """Answer one after the other; the last one again and again."""
        left = list(script)
        self.handler = lambda request: left.pop(0) if len(left) > 1 else left[0]

    def serves(self, routes: Mapping[tuple[str, str], httpx.Response]) -> None:
        """Answer by method and path (below the API's root), everything else with 404."""

        def handle(request: httpx.Request) -> httpx.Response:
            path = request.url.path.removeprefix("/api/v3")
            return routes.get((request.method, path)) or answer(404, {"message": "Not Found"})

        self.handler = handle

    def minted(self, lifetime: timedelta = timedelta(hours=1)) -> httpx.Response:
        """A fresh token."""
        expires_at = (self.clock.now() + lifetime).strftime("%Y-%m-%dT%H:%M:%SZ")
        return answer(201, {"token": f"ghs_token{len(self.mints):03}" + "x" * 31, "expires_at": expires_at})

    async def _serve(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/access_tokens"):
            self.mints.append(request)
            given = self.mint(request) if self.mint else self.minted()
        else:
            self.requests.append(request)
            given = self.handler(request)
        if isinstance(given, Exception):
            raise given
        # A fresh one each time: httpx consumes the stream of an answer.
        return httpx.Response(given.status_code, content=given.content, headers=given.headers)


@asynccontextmanager
async def connected(
    github: ScriptedGitHub, keys: Path, deadlines: Deadlines = GENEROUS
) -> AsyncIterator[GitHubGateway]:
    """A gateway with both Apps, speaking to the scripted GitHub."""
    files = {"111": keys / "org.pem", "222": keys / "user.pem"}
    for file in files.values():
        file.write_bytes(private_key())
    async with GitHubGateway(
        API,
        files,
        github.clock,
        runner_group=GROUP,
        observe=github.observations.append,
        transport=github.transport,
        deadlines=deadlines,
    ) as gateway:
        yield gateway


def a_runner(number: int = 1, **other: Any) -> dict[str, Any]:
    """A runner as GitHub lists it."""
    return {
        "id": number,
        "name": f"rise-riscv-runner-{number:09}",
        "os": "linux",
        "status": "online",
        "busy": False,
        "labels": [],
    } | other


def a_job(**other: Any) -> dict[str, Any]:
    """A queued job as GitHub shows it."""
    return {
        "id": 1,
        "run_id": 10,
        "status": "queued",
        "conclusion": None,
        "created_at": "2026-03-01T12:00:00Z",
        "started_at": "2026-03-01T12:00:01Z",
        "completed_at": None,
        "labels": ["Ubuntu-24.04-RISCV"],
        "runner_id": None,
        "runner_name": None,
        "name": "build",
        "html_url": "https://github.test/job/1",
        "run_attempt": 1,
    } | other
