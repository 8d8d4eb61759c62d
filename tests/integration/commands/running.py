"""The `switchboard` command as people start it: a child process with settings, environment and a terminal to read."""

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from controller.gateways.clock import SystemClock
from controller.simulators.cluster import Behaviour, ClusterSimulator, RunnerProgram
from tests.serving import serving
from tests.systems import BOARD_LABEL, a_pool
from tests.waiting import DEADLINE
from tests.worlds import ORGANIZATION_APP, USER_APP, GitHubWorld, a_github

POOL = "rv1"
HOOK_SECRET = "planted-webhook-secret-83b0d2"  # one word: spaces separate several
CLUSTER_TOKEN = "planted-cluster-token-6f1c9a"
SOON = timedelta(milliseconds=20)
QUICK = Behaviour(pull_time=SOON, start_time=SOON, stop_time=SOON)


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


async def run(
    *arguments: str, environment: Mapping[str, str] | None = None, within: float = DEADLINE
) -> Done:
    """Run a command to its end."""
    process = await _start(arguments, environment or {})
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


@dataclass(slots=True)
class Serving:
    """A command that serves until it is told to end."""

    process: asyncio.subprocess.Process
    url: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its log."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    async def end(self) -> Done:
        """SIGTERM, and how it ended."""
        self.process.terminate()
        return await self.ended()

    async def ended(self) -> Done:
        """Wait for its end."""
        async with asyncio.timeout(DEADLINE):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        self.lines += out.decode().splitlines()
        return Done(self.process.returncode, "\n".join(self.lines), err.decode())

    async def says(self, event: str) -> dict[str, Any]:
        """Read on until it has logged this."""
        assert self.process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            async for line in self.process.stdout:
                self.lines.append(line.decode().rstrip("\n"))
                if self.lines[-1].startswith("{") and (said := json.loads(line))["event"] == event:
                    return dict(said)
        raise AssertionError(f"it ended without {event}: {self.lines[-3:]}")


@asynccontextmanager
async def served(*arguments: str, environment: Mapping[str, str]) -> AsyncIterator[Serving]:
    """Start a command and wait until it serves; it is killed with the block if it still runs."""
    child = Serving(await _start(arguments, environment))
    try:
        child.url = (await child.says("program.serving"))["url"]
        yield child
    finally:
        if child.process.returncode is None:
            child.process.kill()
            await child.process.communicate()


async def _start(arguments: tuple[str, ...], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "controller.cli", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), **environment},
        limit=1 << 20,
    )


@dataclass(frozen=True, slots=True)
class Ground:
    """What a command stands on: a served GitHub and cluster, a settings file, and the environment to run in."""

    github: GitHubWorld
    cluster: ClusterSimulator
    config: Path
    environment: dict[str, str]


@asynccontextmanager
async def a_ground(
    database_url: str, directory: Path, *, boards: int = 2, **more: Any
) -> AsyncIterator[Ground]:
    """Prepare it, on the machine's clock."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        github = await stack.enter_async_context(a_github(clock, HOOK_SECRET))
        cluster = ClusterSimulator(clock, random.Random(3), token=CLUSTER_TOKEN)
        cluster.default_program = RunnerProgram(github.base_url, "2.335.0")
        for number in range(1, boards + 1):
            cluster.add_board(f"{POOL}-{number}", {BOARD_LABEL: POOL})
            cluster.set_board_behaviour(f"{POOL}-{number}", QUICK)
        url = await stack.enter_async_context(serving(cluster.app))
        await stack.enter_async_context(cluster.running())
        kubeconfig, config = directory / "kubeconfig", directory / "settings.yaml"
        kubeconfig.write_text(cluster.kubeconfig(url), encoding="utf-8")
        kinds = {"Organization": ORGANIZATION_APP, "User": USER_APP}
        apps = {kind: {"appId": app, "privateKeyFile": str(github.apps[app])} for kind, app in kinds.items()}
        settings = {
            "github": {"apiUrl": github.base_url, "apps": apps},
            "pools": [a_pool(POOL)],
            "web": {"listen": "127.0.0.1:0"},
            **more,
        }
        config.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        yield Ground(
            github,
            cluster,
            config,
            {
                "DATABASE_URL": database_url,
                "GITHUB_WEBHOOK_SECRET": github.webhook_secret,
                "KUBECONFIG": str(kubeconfig),
                "SWITCHBOARD_CONFIG": str(config),
            },
        )
