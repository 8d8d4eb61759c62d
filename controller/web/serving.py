"""Serving an ASGI app: uvicorn without its signal handlers, since signals belong to `app`."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from starlette.types import ASGIApp

from controller.errors import ConfigError

BACKLOG = 2048
GRACE_SECONDS = 5
# Longer than GitHub, proxies and load balancers reuse an idle connection (60 s is usual): what they send on one that
# is just being closed is lost, and a delivery is not sent again.
IDLE_SECONDS = 75
LOOK_SECONDS = 0.01


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program."""
        yield


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, host: str, port: int, *, dated: bool = True) -> AsyncIterator[str]:
    """Serve the app for the length of the block; gives its base URL. Port 0: any free one.

    An app that goes by another clock than the machine's dates its answers itself.
    """
    listener = _bind(host, port)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ws="none",
        lifespan="off",
        server_header=False,
        date_header=dated,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name=f"serve {host}:{port}")
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 -- uvicorn sets a flag, no event
            await asyncio.sleep(LOOK_SECONDS)
        if task.done():
            task.result()
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 -- compared, not bound
        yield f"http://{shown}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


def _bind(host: str, port: int) -> socket.socket:
    """Bind now, so that a taken port is said at once. The protocol is named: asyncio then turns Nagle off."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError([f"web.listen: {host}:{port} cannot be used: {error.strerror}"]) from error
    return listener
