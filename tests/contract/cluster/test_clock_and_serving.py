"""The two tools that every test over HTTP stands on."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from tests.clocks import EPOCH, ManualClock
from tests.serving import serving


async def hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


async def endless(_: Request) -> StreamingResponse:
    async def lines() -> AsyncIterator[bytes]:
        yield b"first\n"
        await asyncio.Event().wait()

    return StreamingResponse(lines())


APP = Starlette(routes=[Route("/", hello), Route("/endless", endless)])


async def test_sleepers_wake_in_the_order_of_their_time_and_see_it() -> None:
    clock = ManualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *delays: float) -> None:
        for delay in delays:
            await clock.sleep(timedelta(seconds=delay))
            woken.append((name, (clock.now() - EPOCH).total_seconds()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("slow", 5))
        group.create_task(sleeper("twice", 2, 2))
        await clock.advance(timedelta(seconds=3))
        assert woken == [("twice", 2)]
        await clock.advance(timedelta(seconds=7))

    assert woken == [("twice", 2), ("twice", 4), ("slow", 5)]
    assert clock.now() == EPOCH + timedelta(seconds=10)


async def test_a_step_of_time_waits_for_http_inside_the_process() -> None:
    clock = ManualClock()
    answers: list[str] = []

    async def ask(url: str) -> None:
        async with httpx.AsyncClient() as client:
            for _ in range(3):
                await clock.sleep(timedelta(seconds=1))
                answers.append((await client.get(url)).text)

    async with serving(APP) as url, asyncio.TaskGroup() as group:
        group.create_task(ask(url))
        await clock.advance(timedelta(seconds=3))
        assert answers == ["hello"] * 3


async def test_serving_ends_although_a_stream_is_open() -> None:
    async with httpx.AsyncClient() as client:
        async with serving(APP) as url:
            response = await client.send(client.build_request("GET", f"{url}/endless"), stream=True)
            assert await anext(response.aiter_lines()) == "first"
        await response.aclose()
