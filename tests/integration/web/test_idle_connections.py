"""A connection that GitHub or a proxy keeps for its next delivery is not closed under its hands."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from controller.web.serving import serving

REUSED_FOR = 6.0  # seconds; httpx reuses an idle connection for five, proxies for longer
ASK = b"GET / HTTP/1.1\r\nHost: boards\r\n\r\n"


async def test_an_idle_connection_stays_open_as_long_as_a_client_may_reuse_it() -> None:
    app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("here"))])
    async with serving(app, "127.0.0.1", 0) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(2):
            writer.write(ASK)
            assert (await reader.readuntil(b"here")).startswith(b"HTTP/1.1 200")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(REUSED_FOR):
                    await reader.read()
        writer.close()
