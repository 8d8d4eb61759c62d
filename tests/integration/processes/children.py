"""The program as a real child process: started, asked, paused, killed; its log is read as it comes."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.waiting import DEADLINE, until
from tests.worlds import plain_http

END_SECONDS = 20.0
PATIENCE = 60.0  # several programs start at once
LINE_LIMIT = 1 << 20


class Child:
    """One `switchboard` process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._reading = asyncio.create_task(self._read(), name=f"log of {process.pid}")
        self.log: list[dict[str, Any]] = []
        self.url = ""

    @property
    def pid(self) -> int:
        """The process, also after it has ended."""
        return self._process.pid

    def said(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """The log lines of that event with these fields."""
        return [
            line
            for line in self.log
            if line.get("event") == event and all(line.get(name) == value for name, value in fields.items())
        ]

    async def says(self, event: str, **fields: object) -> dict[str, Any]:
        """Wait until it has logged that, and give the first such line."""

        async def logged() -> bool:
            assert not self._reading.done() or self.said(event, **fields), f"it ended: {self.log[-3:]}"
            return bool(self.said(event, **fields))

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

    async def end(self) -> int:
        """SIGTERM, and its exit code; killed if it does not end."""
        if self._process.returncode is None:
            self.resume()
            self._process.terminate()
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                await self.kill()
        await self._reading
        assert self._process.returncode is not None
        return self._process.returncode

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                self.log.append({"event": "unreadable", "line": line.decode(errors="replace")})


@asynccontextmanager
async def a_child(command: str, settings: Path, environment: Mapping[str, str]) -> AsyncIterator[Child]:
    """Start `switchboard COMMAND` and wait until it serves; it is ended with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "controller.cli", command, "--config", str(settings)),
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_LIMIT,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(settings.parent), **environment},
    )
    child = Child(process)
    try:
        child.url = (await child.says("program.serving"))["url"]
        yield child
    finally:
        await child.end()
