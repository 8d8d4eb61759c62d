"""The doorbell: LISTEN on a connection of its own, which reconnects; after that an iteration always runs."""

from collections.abc import Callable
from datetime import timedelta

import psycopg
import structlog
from psycopg import sql

from controller.errors import StoreError
from controller.gateways.postgres.database import Connection, Database, answering_within, identifier
from controller.ports import Clock

log = structlog.get_logger()

PROBE_SECONDS = 30.0
ANSWER_SECONDS = 5.0
RETRY = timedelta(seconds=1)


class Listener:
    """Calls `wake` for every notification, and once after every (re)connection."""

    def __init__(self, database: Database, clock: Clock, wake: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._wake = wake
        self.connected = False

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                await self._listen()
            except (StoreError, psycopg.Error, OSError, TimeoutError) as error:
                log.warning("listener.lost", error=type(error).__name__)
            finally:
                self.connected = False
            await self._clock.sleep(RETRY)

    async def _listen(self) -> None:
        connection = await self._database.connect()
        try:
            await connection.execute(sql.SQL("LISTEN {}").format(identifier(self._database.channel)))
            self.connected = True
            log.info("listener.connected", channel=self._database.channel)
            self._wake()
            while True:
                await self._wait(connection)
        finally:
            await connection.close()

    async def _wait(self, connection: Connection) -> None:
        """Pass on notifications; when none comes for a while, see whether the connection still lives."""
        async for _ in connection.notifies(timeout=PROBE_SECONDS):
            self._wake()
        with answering_within(connection, ANSWER_SECONDS):
            await connection.execute("SELECT 1")
