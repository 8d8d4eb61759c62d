"""A way to PostgreSQL that can fail as networks do: silent, cut, or losing the answer to what was done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK = 1 << 16
SOCKET = ".s.PGSQL.5432"


@dataclass(slots=True)
class Proxy:
    """Passes bytes on between TCP clients and the server's socket."""

    address: str  # of the server's socket
    url: str = ""
    answers_lost: int = 0
    _loses: tuple[bytes, ...] = ()
    _stops_at: bytes | None = None
    _flows: asyncio.Event = field(default_factory=asyncio.Event)
    _serving: set[asyncio.Task[None]] = field(default_factory=set)

    def fall_silent(self) -> None:
        """Pass nothing on any more, in either direction; connections stay open and new ones get no answer."""
        self._flows.clear()

    def fall_silent_at(self, statement: bytes) -> None:
        """Fall silent when a client sends this, and keep it back."""
        self._stops_at = statement

    @property
    def silent(self) -> bool:
        """Whether nothing is passed on."""
        return not self._flows.is_set()

    def look(self, sent: bytes) -> None:
        """See what a client sends before it is passed on."""
        if self._stops_at is not None and self._stops_at in sent:
            self._stops_at = None
            self.fall_silent()

    def speak(self) -> None:
        """Pass on again, first what had piled up."""
        self._flows.set()

    def lose_answer(self, *statements: bytes) -> None:
        """Cut the connection that next sends these one after the other, once the last has been carried out."""
        self._loses = statements

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        link = _Link(self, reader, writer)
        try:
            with suppress(asyncio.CancelledError):  # `close`; asyncio complains of a server's cancelled tasks
                await link.run()
        finally:
            self._serving.discard(task)
            writer.close()

    async def close(self) -> None:
        """End all connections."""
        tasks = list(self._serving)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def flowing(self) -> None:
        """Wait while it is silent."""
        await self._flows.wait()

    @property
    def loses(self) -> tuple[bytes, ...]:
        """The statements whose last answer gets lost."""
        return self._loses

    def lost(self) -> None:
        """One answer was lost, and no more are."""
        self.answers_lost += 1
        self._loses = ()


class _Link:
    """A client and the server, until one of them hangs up or the answer is lost."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._seen = 0
        self._doomed = False

    async def run(self) -> None:
        """Pass on in both directions."""
        reader, writer = await asyncio.open_unix_connection(self._proxy.address)
        there = asyncio.create_task(self._pass_on(self._reader, writer, asked=True))
        back = asyncio.create_task(self._pass_on(reader, self._writer, asked=False))
        try:
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (there, back):
                task.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            writer.close()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, asked: bool
    ) -> None:
        with suppress(OSError):
            while chunk := await source.read(CHUNK):
                if asked:
                    self._proxy.look(chunk)
                await self._proxy.flowing()
                if asked:
                    self._look(chunk)
                elif self._doomed:
                    self._proxy.lost()
                    return
                target.write(chunk)
                await target.drain()

    def _look(self, chunk: bytes) -> None:
        loses = self._proxy.loses
        while self._seen < len(loses) and loses[self._seen] in chunk:
            self._seen += 1
        self._doomed = bool(loses) and self._seen == len(loses)


@asynccontextmanager
async def a_proxy(database_url: str) -> AsyncIterator[Proxy]:
    """A proxy to the server of this URL, and the URL by which it is reached."""
    target = conninfo_to_dict(database_url)
    proxy = Proxy(f"{target['host']}/{SOCKET}")
    proxy.speak()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    proxy.url = make_conninfo(user=target["user"], dbname=target["dbname"], host="127.0.0.1", port=port)
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
