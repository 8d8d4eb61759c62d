"""List and watch one kind of object into a cache, for as long as the program runs.

A list gives the state, the watch every change after it, bookmarks the place to go on from. A watch that ended
in good order goes on where it was; one that broke is tried once more from there, then everything is listed.
What cannot be kept fresh becomes Unknown, at once when that second try fails too: nothing may be concluded from a
stale view, and nothing is begun in a cluster that does not answer.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import structlog

from controller.domain.sightings import Unknown
from controller.errors import ClusterError, ClusterUnavailable, clip
from controller.gateways.kubernetes.parse import Raw, parse_version
from controller.gateways.kubernetes.wire import Call, Wire, refusal
from controller.ports import Clock, Random

T = TypeVar("T")
GONE = 410
PAGE = 500
SHORT_WATCH = timedelta(seconds=1)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """How long things may take. `rotation` and `silence` are real time, the others the clock's."""

    rotation: timedelta = timedelta(seconds=290)  # the server ends every watch after this
    silence: timedelta = timedelta(seconds=30)  # beyond the rotation: a watch that says nothing is dropped
    stale_after: timedelta = timedelta(seconds=30)
    first_backoff: timedelta = timedelta(milliseconds=500)
    last_backoff: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """What is watched, how it is read, and which changes are worth waking for."""

    name: str
    path: str
    parse: Callable[[Raw], T]
    matters: Callable[[T, T], bool]  # before, after; coming and going always matter


class WatchCache(Generic[T]):
    """All objects of a kind as last heard of."""

    def __init__(
        self,
        wire: Wire,
        kind: Kind[T],
        clock: Clock,
        rng: Random,
        limits: WatchLimits,
        on_change: Callable[[], None],
    ) -> None:
        self._wire = wire
        self._kind = kind
        self._clock = clock
        self._rng = rng
        self._limits = limits
        self._on_change = on_change
        self._items: dict[str, T] = {}
        self._snapshot: Mapping[str, T] | None = None
        self._resume: str | None = None  # None: list first
        self._version = 0
        self._failures = 0
        self._broken_since: datetime | None = None
        self._out_of_reach = False  # broken, and the attempt to mend it has failed
        self._why = f"{kind.name} have not been listed yet"
        self.listed = asyncio.Event()

    @property
    def version(self) -> int:
        """The highest resource version this cache has passed."""
        return self._version

    def snapshot(self) -> Mapping[str, T] | Unknown:
        """An unchanging copy, made only if something changed since the last call."""
        if not self.listed.is_set() or self._stale():
            return Unknown(self._why)
        if self._snapshot is None:
            self._snapshot = MappingProxyType(dict(self._items))
        return self._snapshot

    async def run(self) -> None:
        """Keep the cache fresh until cancelled."""
        while True:
            try:
                if self._resume is None or self._stale():
                    await self._list()
                await self._watch(self._resume or "")
            except ClusterError as error:
                await self._recover(str(error), error.status)
            except Exception as error:  # a surprise in one object must not end the watch for good
                log.exception("watch.crashed", kind=self._kind.name)
                await self._recover(f"{type(error).__name__}: {error}", None)

    def _stale(self) -> bool:
        since = self._broken_since
        too_long = since is not None and self._clock.now() - since >= self._limits.stale_after
        return too_long or self._out_of_reach

    def _mended(self) -> None:
        self._broken_since, self._out_of_reach = None, False

    async def _recover(self, why: str, status: int | None) -> None:
        """Note the break and wait, longer each time; the first 410 is ordinary and does not wait."""
        self._failures += 1
        if self._broken_since is None:
            self._broken_since = self._clock.now()
        else:
            self._out_of_reach = self._failures > 1 and status != GONE
        self._why = clip(f"{self._kind.name} cannot be watched: {why}")
        if status == GONE or self._failures > 1:
            self._resume = None
        if status == GONE and self._failures == 1:
            return
        log.warning("watch.broken", kind=self._kind.name, why=clip(why), failures=self._failures)
        await self._clock.sleep(self._backoff())

    def _backoff(self) -> timedelta:
        doubled = self._limits.first_backoff * 2.0 ** min(self._failures - 1, 16)
        return min(doubled, self._limits.last_backoff) * (0.5 + self._rng.random() / 2)

    async def _list(self) -> None:
        """Read all pages, then put them in the place of what was known."""
        found: dict[str, T] = {}
        query: dict[str, str | int] = {"limit": PAGE}
        while True:
            page = await self._wire.fetch(Call(f"list {self._kind.name}", "GET", self._kind.path, query))
            for raw in page.get("items") or ():
                found[raw["metadata"]["name"]] = self._kind.parse(raw)
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                break
            query["continue"] = metadata["continue"]
        worth_waking = not self.listed.is_set() or self._stale() or self._differs(found)
        self._items, self._snapshot = found, None
        self._resume = str(metadata.get("resourceVersion") or "")
        # Not the highest ever: after a restored etcd the old numbers would claim that new pods were seen.
        self._version = parse_version(self._resume)
        self._mended()
        self.listed.set()
        if worth_waking:
            self._on_change()

    def _differs(self, found: Mapping[str, T]) -> bool:
        return found.keys() != self._items.keys() or any(
            self._kind.matters(self._items[name], after) for name, after in found.items()
        )

    async def _watch(self, version: str) -> None:
        """Follow the changes until the server ends the watch."""
        rotation = self._limits.rotation
        call = Call(
            f"watch {self._kind.name}",
            "GET",
            self._kind.path,
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": max(1, int(rotation.total_seconds())),
            },
        )
        async with self._wire.stream(call, rotation + self._limits.silence) as lines:
            opened_at, heard = self._clock.now(), False
            self._mended()
            async for line in lines:
                self._apply(call, line)
                heard, self._failures = True, 0
        if not heard and self._clock.now() - opened_at < SHORT_WATCH:
            raise ClusterUnavailable(f"{call.what}: ended at once without a word")
        self._failures = 0
        self._broken_since = self._clock.now()  # until the next one is open

    def _apply(self, call: Call, line: bytes) -> None:
        """Take one event of the stream into the cache."""
        try:
            event: dict[str, Any] = json.loads(line)
            kind, raw = event["type"], event["object"]
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterUnavailable(f"{call.what}: an event that cannot be read") from error
        if kind == "ERROR":
            code = raw.get("code")
            raise refusal(call, code if isinstance(code, int) else 500, json.dumps(raw).encode())
        version = raw["metadata"].get("resourceVersion") or ""
        if kind != "BOOKMARK":
            self._change(raw["metadata"]["name"], None if kind == "DELETED" else self._kind.parse(raw))
        if version:
            self._resume = version
            self._version = max(self._version, parse_version(version))

    def _change(self, name: str, after: T | None) -> None:
        before = self._items.get(name)
        if after == before:
            return
        if after is None:
            del self._items[name]
        else:
            self._items[name] = after
        self._snapshot = None
        if before is None or after is None or self._kind.matters(before, after):
            self._on_change()
