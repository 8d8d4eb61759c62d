"""Connections to PostgreSQL: the pool, single connections, and the mapping of psycopg's errors to ours.

The clock of the database is never asked: every statement is given `now`. Nobody waits for a silent database for
ever: keepalives notice a host that vanished, and a connection that does not answer in time is cut from this side.
"""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from controller.errors import LeadershipLost, StoreBusy, StoreError, StoreUnavailable, clip
from controller.ports import Secret

Connection = AsyncConnection[DictRow]

CONNECT_TIMEOUT_SECONDS = 5
POOL_TIMEOUT_SECONDS = 5.0
TRANSACTION_SECONDS = 20.0  # longer than anyone waits for a lock
CHECK_SECONDS = 1.0
KEEPALIVES: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 9_000,
}
SERVER_KEEPALIVES = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=2 -c tcp_user_timeout=9000"
)
# No transaction of ours waits for anything but the database, so one that idles belongs to a process that is paused
# or cut off; what it has locked must not keep its successor waiting.
ABANDONED = "-c idle_in_transaction_session_timeout=8s"


BUSY = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
)
UNAVAILABLE = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.TransactionRollback,
    psycopg.errors.IdleInTransactionSessionTimeout,  # the connection is gone, though its class says otherwise
    PoolTimeout,
)


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise only StoreError and its children, without parameters or the address in the text."""
    try:
        yield
    except BUSY as error:
        raise StoreBusy(clip(f"{type(error).__name__}: {_first_line(error)}")) from error
    except UNAVAILABLE as error:
        raise StoreUnavailable(clip(f"{type(error).__name__}: {_first_line(error)}")) from error
    except psycopg.Error as error:
        raise StoreError(clip(f"{type(error).__name__}: {_first_line(error)}")) from error


@contextmanager
def answering_within(connection: Connection, seconds: float) -> Iterator[None]:
    """Cut the connection if the block takes longer; whoever waits for an answer then gets an error at once."""
    timer = asyncio.get_running_loop().call_later(seconds, cut, connection)
    try:
        yield
    finally:
        timer.cancel()


def cut(connection: Connection) -> None:
    """End a connection under whoever uses it. Cancelling would ask the server first, which does not answer."""
    with (
        suppress(OSError, psycopg.Error),  # it has ended by itself
        socket.socket(fileno=os.dup(connection.pgconn.socket)) as same,
    ):
        same.shutdown(socket.SHUT_RDWR)


ADDRESS = re.compile(r"connection to server (?:at|on socket) .*? failed: ")


def _first_line(error: BaseException) -> str:
    """What went wrong without where: later lines quote rows, some quote the address with its password."""
    lines = str(error).strip().splitlines()
    if not lines:
        return ""
    if "connection info string" in lines[0] or "connection option" in lines[0]:
        return "the database address is malformed"
    return ADDRESS.sub("", lines[0])


class Database:
    """A pool of connections whose search path is the installation's schema."""

    def __init__(self, url: Secret, schema: str, max_connections: int) -> None:
        self.url = url
        self.schema = schema
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url.reveal(),
            min_size=1,
            max_size=max_connections,
            timeout=POOL_TIMEOUT_SECONDS,
            open=False,
            kwargs={**self.arguments(), "autocommit": True},  # a transaction begins where one is asked for
            connection_class=AsyncConnection[DictRow],
        )
        self._checked_at: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()
        self._in_use: set[Connection] = set()

    def arguments(self) -> dict[str, Any]:
        """What every connection is opened with."""
        return {
            **KEEPALIVES,
            "row_factory": dict_row,
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "options": f"-c search_path={self.schema} {SERVER_KEEPALIVES} {ABANDONED}",
            "application_name": "switchboard",
        }

    @asynccontextmanager
    async def _sound(self) -> AsyncIterator[Connection]:
        """A connection that answers. After a dead one the next is tried at once: all may have died with the server,
        and the pool's own check pauses for seconds after each."""
        clock = asyncio.get_running_loop().time
        until = clock() + POOL_TIMEOUT_SECONDS
        while True:
            connection = await self._pool.getconn(max(0.0, until - clock()))
            try:
                if await self._answers(connection, until - clock()):
                    async with connection:
                        yield connection
                    return
            finally:
                await self._pool.putconn(connection)

    async def _answers(self, connection: Connection, patience: float) -> bool:
        """Before a connection is lent: is it alive? Asked at most once a second, since it costs a round trip."""
        now = asyncio.get_running_loop().time()
        if now - self._checked_at.get(connection, -CHECK_SECONDS) < CHECK_SECONDS:
            return True
        try:
            with answering_within(connection, patience):
                await AsyncConnectionPool.check_connection(connection)
        except psycopg.Error:
            await connection.close()  # the pool makes another one in its place
            return False
        self._checked_at[connection] = now
        return True

    async def open(self) -> None:
        """Start the pool; the database may still be away."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """End the pool."""
        await self._pool.close(timeout=2.0)

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Connection]:
        """A connection of the pool, for one transaction."""
        with store_errors():
            try:
                async with self._sound() as connection:
                    self._in_use.add(connection)
                    try:
                        with answering_within(connection, TRANSACTION_SECONDS):
                            yield connection
                    finally:
                        self._in_use.discard(connection)
            except UNAVAILABLE:
                self._checked_at.clear()  # the others are suspect too
                raise

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction on a connection of the pool."""
        async with self._lent() as connection, connection.transaction():
            yield connection

    async def fetch(self, statement: str, values: Mapping[str, Any] | None = None) -> list[DictRow]:
        """The rows of one statement, which is a transaction by itself: one round trip instead of three."""
        async with self._lent() as connection:
            return await (await connection.execute(statement, values)).fetchall()

    def sever(self) -> None:
        """Cut every transaction under way: this process may not go on with them. The other connections are suspect."""
        self._checked_at.clear()
        for connection in self._in_use:
            cut(connection)

    LEADS = "SELECT 1 FROM leader WHERE id = 1 AND epoch = %(epoch)s FOR SHARE"

    @asynccontextmanager
    async def leading(self, epoch: int) -> AsyncIterator[Connection]:
        """A transaction that writes only if this epoch still leads; a successor waits for its commit."""
        async with self.transaction() as connection:
            cursor = await connection.execute(self.LEADS, {"epoch": epoch})
            if await cursor.fetchone() is None:
                raise LeadershipLost(f"epoch {epoch} no longer leads")
            yield connection

    async def write(self, statement: str, values: Mapping[str, Any], epoch: int) -> DictRow:
        """The same for one statement by itself: it writes and selects `FROM leads`, made of LEADS; gives its row."""
        rows = await self.fetch(statement, {**values, "epoch": epoch})
        if not rows:
            raise LeadershipLost(f"epoch {epoch} no longer leads")
        return rows[0]

    async def connect(self) -> Connection:
        """A connection of its own, outside the pool, in autocommit: for LISTEN and for leadership."""
        with store_errors():
            return await AsyncConnection[DictRow].connect(
                self.url.reveal(), autocommit=True, **self.arguments()
            )

    @property
    def channel(self) -> str:
        """The doorbell's name."""
        return f"{self.schema}_queue_event"


RING = "SELECT pg_notify(%(channel)s, '')"


async def ring(connection: Connection, channel: str) -> None:
    """Wake the loop when this transaction commits; the rows are the message."""
    await connection.execute(RING, {"channel": channel})


def identifier(name: str) -> sql.Identifier:
    """A quoted name for the few statements that cannot take parameters."""
    return sql.Identifier(name)
