"""Leadership: a session advisory lock on a connection of its own, and an epoch that fences every write.

The lock says who may try; the epoch in `leader` makes sure that a paused former leader writes nothing.
"""

import asyncio
import zlib
from datetime import datetime

from controller.errors import SchemaMismatch, StoreError
from controller.gateways.postgres.database import Connection, Database, store_errors

CONFIRM_SECONDS = 5.0


class Leadership:
    """One process's claim to lead."""

    def __init__(self, database: Database, holder: str) -> None:
        self._database = database
        self._holder = holder
        self._connection: Connection | None = None
        self.epoch: int | None = None

    @property
    def leads(self) -> bool:
        """Whether this process led when it last looked."""
        return self.epoch is not None

    TRY = "SELECT pg_try_advisory_lock(%(space)s, %(key)s) AS got"
    RISE = """
    UPDATE leader SET epoch = epoch + 1, holder = %(holder)s, since = %(now)s WHERE id = 1 RETURNING epoch
    """
    SPACE = 0x5B0A

    async def acquire(self, now: datetime) -> bool:
        """Try to lead; True if this process leads now. StoreUnavailable if the database cannot be reached."""
        if self.epoch is not None:
            return True
        if self._connection is None:
            self._connection = await self._database.connect()
        try:
            with store_errors():
                key = zlib.crc32(self._database.schema.encode()) - 2**31
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
        return True

    async def confirm(self) -> bool:
        """Whether the lock's connection still lives; when it does not, this process leads no more."""
        if self._connection is None or self.epoch is None:
            return False
        try:
            with store_errors():
                async with asyncio.timeout(CONFIRM_SECONDS):
                    await self._connection.execute("SELECT 1")
        except (StoreError, TimeoutError):
            await self.drop()
            return False
        return True

    async def drop(self) -> None:
        """Let go, so that another process may lead at once."""
        connection, self._connection, self.epoch = self._connection, None, None
        if connection is not None:
            await connection.close()
