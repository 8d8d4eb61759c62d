"""The `switchboard` command as a real child process: run to its end, or served, asked, paused and killed."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.waiting import DEADLINE, until
from tests.worlds import plain_http

PATIENCE = 60.0  # several programs start at once
LONGER_THAN_AN_ITERATION = 0.6  # seconds
LINE_LIMIT = 1 << 20


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
    child = Child(await _start(arguments, environment or {}))
    try:
        return await child.ended(within)
    except TimeoutError:
        await child.kill()
        raise


class Child:
    """One `switchboard` process; its log is read as it comes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._out: list[str] = []
        self._err: list[str] = []
        self._reading = [
            asyncio.create_task(self._read_out(), name=f"stdout of {process.pid}"),
            asyncio.create_task(self._read_err(), name=f"stderr of {process.pid}"),
        ]
        self.log: list[dict[str, Any]] = []
        self.url = ""

    def said(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """The log lines of that event with these fields."""
        return [
            line
            for line in self.log
            if line["event"] == event and all(line.get(name) == value for name, value in fields.items())
        ]

    async def says(self, event: str, **fields: object) -> dict[str, Any]:
        """Wait until it has logged that, and give the first such line."""

        async def logged() -> bool:
            over = all(task.done() for task in self._reading)
            found = bool(self.said(event, **fields))
            assert found or not over, f"it ended without {event}: {self._out[-3:]} {self._err[-3:]}"
            return found

        await until(logged, PATIENCE)
        return self.said(event, **fields)[0]

    async def ready(self) -> dict[str, Any]:
        """What `/ready` says; {} when it does not answer."""
        async with httpx.AsyncClient(base_url=self.url, transport=plain_http()) as client:
            try:
                answer = await client.get("/ready", timeout=DEADLINE)
            except httpx.HTTPError:
                return {}
        return dict(answer.json())

    async def leads(self) -> bool:
        """Whether it says that it leads."""
        return (await self.ready()).get("role") == "leader"

    async def iterated(self, times: int) -> None:
        """Wait until it has come round so often."""

        async def enough() -> bool:
            return int((await self.ready()).get("iterations", 0)) >= times

        await until(enough, PATIENCE)

    async def calm(self) -> None:
        """Wait until nothing that has happened so far makes it come round again."""

        async def rests() -> bool:
            before = (await self.ready()).get("iterations")
            await asyncio.sleep(LONGER_THAN_AN_ITERATION)
            return (await self.ready()).get("iterations") == before

        await until(rests, PATIENCE)

    async def kill(self) -> None:
        """SIGKILL: nothing is said, finished or released."""
        self._process.kill()
        await self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: it lives, its connections stay open, and it does nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM."""
        self._process.terminate()

    async def end(self) -> Done:
        """SIGTERM, and how it ended; killed if it does not end."""
        if self._process.returncode is None:
            self.resume()
            self.terminate()
        try:
            return await self.ended()
        except TimeoutError:
            await self.kill()
            return await self.ended()

    async def ended(self, within: float = DEADLINE) -> Done:
        """Wait for its end."""
        async with asyncio.timeout(within):
            code = await self._process.wait()
            await asyncio.wait(self._reading)
        return Done(code, "".join(self._out), "".join(self._err))

    async def _read_out(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._out.append(line.decode())
            if line.startswith(b"{"):
                self.log.append(json.loads(line))

    async def _read_err(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self._err.append(line.decode())


@asynccontextmanager
async def a_child(*arguments: str, environment: Mapping[str, str]) -> AsyncIterator[Child]:
    """Start `switchboard ARGUMENTS` and wait until it serves; it is ended with the block."""
    child = Child(await _start(arguments, environment))
    try:
        child.url = (await child.says("program.serving"))["url"]
        yield child
    finally:
        await child.end()


async def _start(arguments: tuple[str, ...], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "controller.cli", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), **environment},
        limit=LINE_LIMIT,
    )
