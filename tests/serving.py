"""Serving an ASGI app over real HTTP on a loopback port for the length of a test."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn

BACKLOG = 2048
IDLE_SECONDS = 75  # as real servers: closing sooner than clients stop reusing it breaks what they send
START_DEADLINE = 20.0
LOOPBACK = "127.0.0.1"


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: an interrupt belongs to pytest."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stop = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.stop.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's own, without its pauses of a tenth of a second: here every connection is cut already."""
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        if self.server_state.tasks:
            _, slow = await asyncio.wait(
                self.server_state.tasks, timeout=self.config.timeout_graceful_shutdown
            )
            for task in slow:
                task.cancel()
        await self.lifespan.shutdown()


@contextlib.asynccontextmanager
async def serving(app: Any, host: str = LOOPBACK) -> AsyncIterator[str]:
    """Serve the app and give its base URL; open streams are cut when the block is left."""
    # asyncio turns Nagle's algorithm off only on sockets that name their protocol; with it answers take 40 ms.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, 0))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=2,
        ws="none",
        date_header=False,  # the simulated GitHub goes by its own clock
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[sock]), name=f"serving {sock.getsockname()}")
    try:
        async with asyncio.timeout(START_DEADLINE):
            while not server.started:
                if task.done():
                    task.result()
                    raise RuntimeError("the server ended before it started")
                await asyncio.sleep(0.001)
        yield f"http://{host}:{sock.getsockname()[1]}"
    finally:
        server.stop.set()
        # Asking politely would wait for watches that never end: cut them, the handlers see a disconnect.
        for connection in list(server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        await task
