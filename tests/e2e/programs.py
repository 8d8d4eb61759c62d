"""The controller and the receiver as processes of their own, as they run in a cluster."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from hack.cluster.control_plane import free_ports
from hack.cluster.processes import die_with_parent
from tests.worlds import plain_http

START_LIMIT = 120.0
STOP_LIMIT = 40.0
LOOK = 0.1
PROGRAM = Path(sys.executable).parent / "switchboard"


@dataclass(frozen=True, slots=True)
class Program:
    """A command that was started, and where it will answer."""

    command: str
    url: str
    log: Path
    process: asyncio.subprocess.Process

    async def ready(self) -> None:
        """Return once it answers."""
        async with (
            asyncio.timeout(START_LIMIT),
            httpx.AsyncClient(transport=plain_http(), base_url=self.url) as client,
        ):
            while True:
                if await self._answers(client):
                    return
                await asyncio.sleep(LOOK)

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        self.check()
        try:
            return (await client.get("/health")).status_code == 200
        except httpx.TransportError:
            return False

    def check(self) -> None:
        """Fail if it has ended by itself."""
        assert self.process.returncode is None, f"{self.command} ended:\n{_tail(self.log)}"


@asynccontextmanager
async def running(
    command: str, settings: Mapping[str, Any], environment: Mapping[str, str], folder: Path
) -> AsyncIterator[Program]:
    """Run one command of the program with these settings; it still has to become ready."""
    (port,) = free_ports(1)
    config = folder / f"{command}.yaml"
    config.write_text(yaml.safe_dump({**settings, "web": {"listen": f"127.0.0.1:{port}"}}), encoding="utf-8")
    log = folder / f"{command}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            command,
            "--config",
            config,
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
            preexec_fn=die_with_parent,
        )
    program = Program(command, f"http://127.0.0.1:{port}", log, process)
    try:
        yield program
        program.check()
    except BaseException:
        print(f"--- {command} wrote last:\n{_tail(log)}")
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_LIMIT):
            code = await process.wait()
    assert code == 0, f"{command} ended with {code}:\n{_tail(log)}"


def _tail(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
