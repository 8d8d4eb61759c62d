"""One watch: the changes after a resourceVersion as a stream of lines, until someone ends it.

Time limits and bookmarks are in real seconds, as the client's own: a watch is a connection, not a part of the
simulated world.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from controller.simulators.cluster.objects import Json, Resource
from controller.simulators.cluster.reads import Show, shown_as, test_of
from controller.simulators.cluster.requests import Ask
from controller.simulators.cluster.selectors import Test
from controller.simulators.cluster.status import ApiError
from controller.simulators.cluster.store import Change, Store

BOOKMARK_EVERY = 15.0
LONGEST = 1800.0

Emit = Callable[[bytes], Awaitable[None]]


@dataclass(eq=False, slots=True)
class Watch:
    """An open watch; `run` answers whether it ended in good order."""

    ask: Ask
    store: Store
    _cut: bool = False
    _nudged: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _told: int = 0  # the version that the client knows

    def cut(self) -> None:
        """Break the connection."""
        self._cut = True
        self._news.set()

    def nudge(self) -> None:
        """Send a bookmark now, to a client that wants them."""
        self._nudged = True
        self._news.set()

    def notice(self) -> None:
        """Something changed."""
        self._news.set()

    async def run(self, emit: Emit) -> bool:
        """Emit events until the time is up (True) or the watch is cut (False)."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + min(float(self.ask.number("timeoutSeconds") or LONGEST), LONGEST)
        bookmarks = self.ask.flag("allowWatchBookmarks")
        try:
            place, first = self._begin()
        except ApiError as error:
            await emit(_line("ERROR", error.body()))
            return True
        lines = first
        bookmark_at = loop.time() + BOOKMARK_EVERY
        while True:
            if lines:
                await emit(b"".join(lines))
            if self._cut:
                return False
            self._news.clear()
            changes = self.store.changes(self.ask.resource, place)
            place += len(changes)
            lines = self._lines(changes)
            now = loop.time()
            due = self._nudged or now >= min(bookmark_at, ends_at)
            if bookmarks and due and (self._nudged or self._told != self.store.rv):
                lines.append(self._bookmark())
            if due:
                self._nudged, bookmark_at = False, now + BOOKMARK_EVERY
            if now >= ends_at:
                await emit(b"".join(lines))
                return True
            if not lines:
                await self._wait(min(bookmark_at, ends_at) - now)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._news.wait()
        except TimeoutError:
            return

    def _begin(self) -> tuple[int, list[bytes]]:
        """Where to read on, and what a client that knows nothing is told first."""
        resource: Resource = self.ask.resource
        version = self.ask.number("resourceVersion") or 0
        if version:
            self._told = version
            return self.store.changes_after(resource, version), []
        chosen, show = test_of(self.ask), shown_as(self.ask)
        there = [obj for obj in self.store.all(resource, self.ask.namespace) if chosen(obj)]
        self._told = self.store.rv
        return self.store.changes_after(resource, self.store.rv), [_line("ADDED", show(obj)) for obj in there]

    def _lines(self, changes: Sequence[Change]) -> list[bytes]:
        chosen, show = test_of(self.ask), shown_as(self.ask)
        lines = []
        for change in changes:
            if self.ask.namespace not in (None, change.object["metadata"].get("namespace", "")):
                continue
            line = _event(change, chosen, show)
            if line is not None:
                lines.append(line)
                self._told = change.rv
        return lines

    def _bookmark(self) -> bytes:
        self._told = self.store.rv
        resource = self.ask.resource
        metadata = {"resourceVersion": str(self.store.rv), "creationTimestamp": None}
        bare = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return _line("BOOKMARK", bare)


def _event(change: Change, chosen: Test, show: Show) -> bytes | None:
    """A change as the selector lets it be seen: an object may come and go without being made or deleted."""
    before = change.previous is not None and chosen(change.previous)
    after = change.type != "DELETED" and chosen(change.object)
    match before, after:
        case True, True:
            kind = "MODIFIED"
        case False, True:
            kind = "ADDED"
        case True, False:
            kind = "DELETED"
        case _:
            return None
    return _line(kind, show(change.object))


def _line(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"
