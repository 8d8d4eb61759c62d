"""Those who speak to the simulated GitHub by hand, without the gateway: an App, an installation, a runner."""

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controller.simulators.github import GitHubSimulator, JobSpec
from controller.simulators.github.state import Job

ACCEPT = "application/vnd.github+json"
MINUTE = timedelta(minutes=1)
RISCV = ("ubuntu-24.04-riscv",)


@cache
def _parsed(pem: bytes) -> rsa.RSAPrivateKey:
    """A key by its PEM; parsing takes longer than signing."""
    key = serialization.load_pem_private_key(pem, password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def sign_jwt(key: Path, issuer: str, issued: datetime, expires: datetime) -> str:
    """A JWT with exactly these claims."""
    claims = {"iat": int(issued.timestamp()), "exp": int(expires.timestamp()), "iss": issuer}
    return jwt.encode(claims, _parsed(key.read_bytes()), algorithm="RS256")


@dataclass(frozen=True, slots=True)
class Caller:
    """Asks with one credential."""

    http: httpx.AsyncClient
    bearer: str

    async def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None, **query: Any
    ) -> httpx.Response:
        """One request; redirects are not followed."""
        return await self.http.request(
            method,
            path,
            params=query or None,
            json=body,
            headers={"Authorization": f"Bearer {self.bearer}", "Accept": ACCEPT} | (headers or {}),
        )

    async def get(self, path: str, **query: Any) -> httpx.Response:
        """A GET."""
        return await self.ask("GET", path, **query)

    async def post(self, path: str, body: object = None) -> httpx.Response:
        """A POST."""
        return await self.ask("POST", path, body)

    async def delete(self, path: str) -> httpx.Response:
        """A DELETE."""
        return await self.ask("DELETE", path)

    async def get_if_changed(self, path: str, etag: str) -> httpx.Response:
        """A conditional GET."""
        return await self.ask("GET", path, headers={"If-None-Match": etag})

    async def register(
        self, where: str, name: str, labels: tuple[str, ...] = RISCV, group_id: int = 1
    ) -> "WireRunner":
        """Register a runner at `orgs/acme` or `repos/jane/one`; it is not connected yet."""
        body = {"name": name, "runner_group_id": group_id, "labels": list(labels)}
        answer = await self.post(f"/{where}/actions/runners/generate-jitconfig", body)
        assert answer.status_code == 201, answer.text
        return WireRunner(self.http, answer.json()["runner"]["id"], answer.json()["encoded_jit_config"])


@dataclass(frozen=True, slots=True)
class WireRunner:
    """A runner that speaks the wire protocol, step by step."""

    http: httpx.AsyncClient
    id: int
    config: str

    @property
    def token(self) -> str:
        """The credential inside the JIT config."""
        files = json.loads(base64.b64decode(self.config))
        return str(json.loads(base64.b64decode(files[".credentials"]))["token"])

    async def connect(self, version: str | None = None) -> httpx.Response:
        """Open the session."""
        headers = {} if version is None else {"X-Runner-Version": version}
        return await self.http.post("/_runner/session", content=self.config, headers=headers)

    async def poll(self, wait: float = 0) -> httpx.Response:
        """Ask for a job."""
        return await self.http.get(f"/_runner/{self.id}/job", params={"wait": wait}, headers=self._headers)

    async def renew(self) -> httpx.Response:
        """Renew the lease."""
        return await self.http.post(f"/_runner/{self.id}/renew", headers=self._headers)

    async def finish(self, job_id: int, conclusion: str = "success") -> httpx.Response:
        """Report the end of a job."""
        body = {"job_id": job_id, "conclusion": conclusion}
        return await self.http.post(f"/_runner/{self.id}/finish", json=body, headers=self._headers)

    async def take(self) -> int:
        """Poll for the job that must be there."""
        answer = await self.poll()
        assert answer.status_code == 200, answer.text
        return int(answer.json()["job_id"])

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def queue(sim: GitHubSimulator, *labels: str, repository: str = "jane/one", **fields: Any) -> Job:
    """Queue a run of one job; without labels those of our boards."""
    return sim.queue_run(repository, [JobSpec(labels or RISCV, **fields)]).jobs[0]
