"""Leadership: a session advisory lock on a connection of its own, and an epoch that fences every write.

The lock says who may try; the epoch in `leader` makes sure that a paused former leader writes nothing.

The session is a lease. The leader speaks on it every few seconds (`lost`); the server ends a session that has been
silent for LEASE, whatever became of its process: killed (at once), vanished with its host
(keepalives would notice too), paused, or cut off by something in between that still acknowledges packets. A leader
that gets no answer within ANSWER_SECONDS stops by itself, sooner than the server lets another one lead:

    RENEW_EVERY + ANSWER_SECONDS  <  LEASE
"""

import asyncio
import zlib
from datetime import datetime, timedelta
from typing import LiteralString

from controller.errors import SchemaMismatch, StoreError
from controller.gateways.postgres.database import (
    Connection,
    Database,
    answering_within,
    store_errors,
)

RENEW_EVERY = timedelta(seconds=2)
ANSWER_SECONDS = 4.0
LEASE = timedelta(seconds=8)
RISE_SECONDS = 15.0  # a former leader's last transaction is waited for, until the server ends it


def lock_key(schema: str) -> int:
    """The installation's own advisory lock."""
    return zlib.crc32(schema.encode()) - 2**31


class Leadership:
    """One process's claim to lead."""

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder
        self._connection: Connection | None = None
        self._leading = asyncio.Event()
        self.epoch: int | None = None

    @property
    def leads(self) -> bool:
        """Whether this process led when it last looked."""
        return self.epoch is not None

    TRY = "SELECT pg_try_advisory_lock(%(space)s, %(key)s) AS got"
    RISE = """
    UPDATE leader SET epoch = epoch + 1, holder = %(holder)s, since = %(now)s WHERE id = 1 RETURNING epoch
    """
    SPACE = 0x5B0A  # of all our advisory locks
    LEND: LiteralString = "SET idle_session_timeout = '8s'"  # LEASE

    async def acquire(self, now: datetime) -> bool:
        """Try to lead; True if this process leads now. StoreUnavailable if the database cannot be reached."""
        if self.epoch is not None:
            return True
        if self._connection is None:
            self._connection = await self._database.connect()
        try:
            with store_errors(), answering_within(self._connection, RISE_SECONDS):
                key = lock_key(self._database.schema)
                cursor = await self._connection.execute(self.TRY, {"space": self.SPACE, "key": key})
                row = await cursor.fetchone()
                if row is None or not row["got"]:
                    return False
                cursor = await self._connection.execute(self.RISE, {"holder": self._holder, "now": now})
                risen = await cursor.fetchone()
            if risen is None:
                raise SchemaMismatch("the leader row is missing: run `switchboard migrate`")
        except StoreError:
            await self.drop()
            raise
        self.epoch = risen["epoch"]
        self._leading.set()
        return True

    async def confirm(self) -> bool:
        """Whether the database answers; else this process leads no more, and its transactions are cut."""
        return await self._speak("SELECT 1")

    async def _speak(self, statement: LiteralString) -> bool:
        connection = self._connection
        if connection is None or self.epoch is None:
            return False
        try:
            with store_errors(), answering_within(connection, ANSWER_SECONDS):
                await connection.execute(statement)
        except StoreError:
            if connection is self._connection:
                self._database.sever()
                await self.drop()
            return False
        return True

    async def lost(self) -> None:
        """Take and renew the lease whenever this process leads; return once it is lost, not when it is let go.

        In real time, as the server's own: whatever clock the rest of the program goes by.
        """
        while True:
            await self._leading.wait()
            if not await self._speak(self.LEND) and not self.leads:
                return
            await asyncio.sleep(RENEW_EVERY.total_seconds())

    async def drop(self) -> None:
        """Let go, so that another process may lead at once."""
        connection, self._connection, self.epoch = self._connection, None, None
        self._leading.clear()
        if connection is not None:
            await connection.close()
