"""Attempts to authenticate, as events of their installation; the latest says whether it is suspended."""

from collections.abc import Iterable
from datetime import datetime

from psycopg.types.json import Jsonb

from controller.domain.auth import AuthAttempt, AuthOutcome
from controller.domain.constants import AUTH_FAILURE_EVERY
from controller.gateways.postgres.database import Connection, Database

PREFIX = "installation.auth_"


class AuthAttemptStore:
    """Appends to `events`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    LATEST = """
    SELECT kind, at FROM events WHERE kind LIKE 'installation%%' AND installation_id = %(installation_id)s
    ORDER BY id DESC LIMIT 1
    """
    NOTE = """
    INSERT INTO events (at, source, kind, outcome, installation_id, app_id, detail)
    VALUES (%(at)s, 'controller', %(kind)s, %(outcome)s, %(installation_id)s, %(app_id)s, %(detail)s)
    """

    async def keep(self, attempts: Iterable[AuthAttempt], epoch: int, now: datetime) -> None:
        """A failure leaves an event, the same again only after a while; so does the success that ends it."""
        async with self._database.leading(epoch) as connection:
            for attempt in attempts:
                await self._keep(connection, attempt, now)

    async def _keep(self, connection: Connection, attempt: AuthAttempt, now: datetime) -> None:
        kind = f"{PREFIX}{attempt.outcome.value}"
        values = {"installation_id": attempt.installation_id, "app_id": attempt.app_id}
        latest = await (await connection.execute(self.LATEST, values)).fetchone()
        if attempt.outcome is AuthOutcome.OK:
            failed = latest is not None and latest["kind"].startswith(PREFIX) and latest["kind"] != kind
            if not failed and (latest is None or latest["kind"] != "installation.suspend"):
                return
        elif latest is not None and latest["kind"] == kind and now - latest["at"] < AUTH_FAILURE_EVERY:
            return
        detail = Jsonb({"error": attempt.error} if attempt.error else {})
        outcome = f"auth_attempt.{attempt.outcome.value}"
        values |= {"at": attempt.at, "kind": kind, "outcome": outcome, "detail": detail}
        await connection.execute(self.NOTE, values)
