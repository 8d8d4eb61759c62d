"""Lists: every page or an error. A list that is known to be partial is never handed out as the whole."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from controller.errors import GitHubUnavailable
from controller.gateways.github.answers import Answer, Item
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call

PER_PAGE = 100  # GitHub's maximum
MAX_PAGES = 500


@asynccontextmanager
async def within(deadline: timedelta, call: Call) -> AsyncIterator[None]:
    """Bound a whole list in real time; a list that takes longer is not to be had."""
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            yield
    except TimeoutError as error:
        raise GitHubUnavailable(f"{call.operation}: the list was not complete in time") from error


async def read_all(
    ask: Ask, call: Call, key: str, deadline: timedelta, most: int | None = None
) -> tuple[Item, ...]:
    """All items under `key` over all pages, each id once: pages shift while they are read.

    `most`: of a list that GitHub itself ends after so many, though it counts more.
    """
    items: dict[int, Item] = {}
    async with within(deadline, call):
        async for answer in each_page(ask, call):
            page = answer.item()
            found = page.items(key)
            items.update((item.integer("id"), item) for item in found)
            if answer.next_url is None and len(found) >= PER_PAGE:
                total = page.optional_integer("total_count") or 0
                if most is None or total <= most:
                    _insist_on_the_rest(answer, total, len(items))
    return tuple(items.values())


async def each_page(ask: Ask, call: Call, at_most: int = MAX_PAGES) -> AsyncGenerator[Answer, None]:
    """The pages one by one, along the links that GitHub gives."""
    seen: set[str] = set()
    while True:
        answer = await ask(call)
        yield answer
        if answer.next_url is None:
            return
        if answer.next_url in seen or len(seen) >= at_most:
            raise answer.broken("pages without end")
        seen.add(answer.next_url)
        call = Call(call.operation, call.method, answer.next_url)


def _insist_on_the_rest(answer: Answer, total: int, got: int) -> None:
    """A full last page short of the total: something on the way has eaten the Link header."""
    if got < total:
        raise answer.broken(f"{got} of {total} items and no link to the rest")
