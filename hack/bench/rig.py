"""The rig: PostgreSQL, the simulators and the real program, started as processes and ended by their own ids."""

import asyncio
import hashlib
import hmac
import itertools
import json
import os
import random
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from controller.domain.jobs import Entity, EntityType, Scope
from controller.gateways.clock import SystemClock
from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.github.groups import RunnerGroup
from controller.gateways.kubernetes.connection import connect
from controller.gateways.kubernetes.gateway import KubernetesGateway
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.migrate import migrate
from controller.ports import Secret
from controller.settings import File, parse_file
from controller.simulators.postgres import embedded_postgres
from hack.bench.sender import send_all
from hack.bench.world import BOARD, TOKEN

PATIENCE_SECONDS = 60.0
IMAGE = "registry.example/runner:1"
LABELS = ("bench",)

# The image is one that works, as on any other day: else a burst would wait for the first runner to come online.
WORKED = """
INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image, status,
    created_at, pod_at, running_at, online_at, pod_ended_at, completed_at, updated_at)
VALUES ('rise-riscv-runner-worked000', 1, 'org-0', 'Organization', '111', 7, %(labels)s, %(pool)s, %(image)s,
    'completed', now(), now(), now(), now(), now(), now(), now())
ON CONFLICT (name) DO UPDATE SET completed_at = EXCLUDED.completed_at
"""


@dataclass(slots=True)
class Rig:
    """Everything that runs, and how to reach it."""

    directory: Path
    world: dict[str, Any]
    database_url: str
    database: Database
    file: File
    settings_file: Path
    secret: str
    http: httpx.AsyncClient
    program_url: str = ""
    program: subprocess.Popen[bytes] | None = None
    _job_ids: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1_000_000_000))

    def scope(self, number: int) -> Scope:
        """The organization of that number, counted round."""
        number %= len(self.world["accounts"])
        account = self.world["accounts"][number]
        entity = Entity(account["id"], f"org-{number}", EntityType.ORGANIZATION)
        return Scope("111", account["installation_id"], entity)

    def delivery(
        self, number: int, action: str = "queued", job_id: int | None = None, runner: str | None = None
    ) -> tuple[bytes, dict[str, str]]:
        """A signed delivery of that organization; of a job that nobody has seen, unless one is named."""
        scope, job_id = self.scope(number), job_id or next(self._job_ids)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        owner = {"id": scope.entity.id, "login": scope.entity.name, "type": "Organization"}
        job = {
            "id": job_id,
            "run_id": job_id,
            "run_attempt": 1,
            "name": "bench",
            "html_url": f"https://github.example/{scope.entity.name}/code/actions/runs/{job_id}/job/{job_id}",
            "status": action,
            "conclusion": "success" if action == "completed" else None,
            "labels": list(LABELS),
            "runner_name": runner,
            "created_at": now,
            "started_at": now,
            "completed_at": now if action == "completed" else None,
        }
        payload = {
            "action": action,
            "workflow_job": job,
            "repository": {
                "id": 9,
                "full_name": f"{scope.entity.name}/code",
                "private": False,
                "owner": owner,
            },
            "organization": {"id": scope.entity.id, "login": scope.entity.name},
            "installation": {"id": scope.installation_id, "node_id": "x"},
            "sender": {"id": 6, "login": "bench"},
        }
        body = json.dumps(payload).encode()
        digest = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "content-type": "application/json",
            "x-github-event": "workflow_job",
            "x-github-delivery": secrets.token_hex(16),
            "x-github-hook-installation-target-id": "111",
            "x-github-hook-installation-target-type": "integration",
            "x-hub-signature-256": f"sha256={digest}",
        }
        return body, headers

    async def deliver(self, number: int) -> None:
        """Send one; anything but an acceptance is a fault of the bench."""
        await self._send(*self.delivery(number))

    async def _send(self, body: bytes, headers: dict[str, str]) -> None:
        answer = await self.http.post(f"{self.program_url}/webhook", content=body, headers=headers)
        answer.raise_for_status()

    async def finish_one(self, watch: "PodWatch") -> None:
        """A job from queued to completed: its image has been seen working, so that no slow start is measured."""
        job_id, before = next(self._job_ids), set(watch.seen)
        await self._send(*self.delivery(0, job_id=job_id))
        await watch.until(len(before) + 1)
        (runner,) = watch.seen.keys() - before
        for action in ("in_progress", "completed"):
            await self._send(*self.delivery(0, action, job_id, runner))

    async def deliver_all(self, count: int, at_once: int) -> None:
        """Send one of each organization in turn, signed beforehand."""
        deliveries = [self.delivery(number) for number in range(count)]
        await send_all(f"{self.program_url}/webhook", deliveries, at_once)

    async def metric(self, name: str) -> float:
        """The sum over all labels of one metric of the program."""
        text = (await self.http.get(f"{self.program_url}/metrics")).text
        lines = [line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def memory(self) -> int:
        """What the program holds in memory, in bytes."""
        if self.program is None:
            return 0
        status = Path(f"/proc/{self.program.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The program, `switchboard all`, for the length of the block."""
        async with self.database.transaction() as connection:
            await connection.execute(WORKED, {"labels": list(LABELS), "pool": BOARD, "image": IMAGE})
        environment = {
            **os.environ,
            "DATABASE_URL": self.database_url,
            "GITHUB_WEBHOOK_SECRET": self.secret,
            "KUBECONFIG": self.world["kubeconfig"],
        }
        command = [sys.executable, "-m", "controller.cli", "all", "--log-level", "error"]
        log = (self.directory / "program.log").open("wb")
        self.program = subprocess.Popen(  # noqa: S603, ASYNC220 -- our own program
            [*command, "--config", str(self.settings_file)], env=environment, stdout=log, stderr=log
        )
        try:
            await self._wait_until_it_leads()
            yield
        finally:
            self.program.terminate()
            await asyncio.to_thread(self.program.wait, PATIENCE_SECONDS)
            log.close()

    async def _wait_until_it_leads(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                ready = (await self.http.get(f"{self.program_url}/ready")).json()
                if ready.get("iterations", 0) > 0:
                    return
            except (httpx.HTTPError, ValueError):
                pass
            await asyncio.sleep(0.05)
        raise RuntimeError(f"the program does not lead; see {self.directory / 'program.log'}")


@asynccontextmanager
async def a_rig(directory: Path, *, organizations: int, boards: int) -> AsyncIterator[Rig]:
    """Start PostgreSQL and the simulators; the program is started by `Rig.running`."""
    secret = secrets.token_hex(16)
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(embedded_postgres(directory / "postgres"))
        world = stack.enter_context(_world(directory, organizations, boards, secret))
        port = _free_port()
        raw = {
            "github": {
                "apiUrl": world["github"],
                "apps": {"Organization": {"appId": "111", "privateKeyFile": world["key_file"]}},
            },
            "pools": [{"name": BOARD, "labels": list(LABELS), "image": IMAGE}],
            "entities": {"default": {"maxWorkers": None}},
            "timings": {"pollInterval": "1s"},
            "web": {"listen": f"127.0.0.1:{port}"},
        }
        settings_file = directory / "settings.yaml"
        settings_file.write_text(yaml.safe_dump(raw), encoding="utf-8")
        mistakes: list[str] = []
        file = parse_file(raw, mistakes)
        if file is None:
            raise RuntimeError("; ".join(mistakes))
        database = Database(Secret(database_url), file.database.schema_, 16)
        await migrate(database, datetime.now(UTC))
        await database.open()
        stack.push_async_callback(database.close)
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=30, trust_env=False))
        url = f"http://127.0.0.1:{port}"
        yield Rig(directory, world, database_url, database, file, settings_file, secret, http, url)


@contextmanager
def _world(directory: Path, organizations: int, boards: int, secret: str) -> Iterator[dict[str, Any]]:
    """The simulators' process; what it says of itself."""
    sizes = ["--organizations", str(organizations), "--boards", str(boards), "--secret", secret]
    command = [sys.executable, "-m", "hack.bench.world", str(directory), *sizes]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 -- our own program
    try:
        yield json.loads(process.stdout.readline() if process.stdout else "")
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@asynccontextmanager
async def gateways(rig: Rig) -> AsyncIterator[tuple[GitHubGateway, KubernetesGateway]]:
    """The program's own gateways, for floors: the same requests without the program."""
    clock = SystemClock()
    group = RunnerGroup(rig.file.runner_group, "all", True)
    keys = {"111": Path(rig.world["key_file"])}
    client = await connect(Path(rig.world["kubeconfig"]))
    place = rig.file.kubernetes
    async with (
        GitHubGateway(
            rig.world["github"], keys, clock, runner_group=group, observe=lambda seen: None
        ) as github,
        client,
        KubernetesGateway(
            client,
            place.namespace,
            place.resource,
            place.board_label,
            "floor",
            clock,
            on_change=lambda: None,
            rng=random.SystemRandom(),
        ) as cluster,
    ):
        await cluster.synced()
        yield github, cluster


class PodWatch:
    """When each pod was first seen by a watch of the bench's own: the same end for figure and floor."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.seen: dict[str, float] = {}
        self._news = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["PodWatch"]:
        """Watch for the length of the block."""
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, count: int) -> None:
        """Wait until so many pods have been seen since the watch was opened."""
        async with asyncio.timeout(PATIENCE_SECONDS * 5):
            while len(self.seen) < count:
                self._news.clear()
                await self._news.wait()

    async def _run(self) -> None:
        path = f"{self._rig.world['cluster']}/api/v1/namespaces/default/pods"
        headers = {"authorization": f"Bearer {TOKEN}"}
        listed = (await self._rig.http.get(path, headers=headers)).json()
        known = {pod["metadata"]["name"] for pod in listed["items"]}
        query = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
        async with self._rig.http.stream("GET", path, params=query, headers=headers, timeout=None) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                name = event["object"]["metadata"].get("name")
                if event["type"] == "ADDED" and name not in known:
                    self.seen.setdefault(name, time.perf_counter())
                    self._news.set()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
