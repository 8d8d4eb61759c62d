"""Appending what the controller did to `events`, in the transaction that did it."""

from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from controller.gateways.postgres.database import Connection

NOTE = """
INSERT INTO events (at, source, kind, job_id, worker, detail)
VALUES (%(now)s, 'controller', %(kind)s, %(job_id)s, %(worker)s, %(detail)s)
"""


async def note_event(
    connection: Connection,
    kind: str,
    now: datetime,
    *,
    worker: str | None = None,
    job_id: int | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Append one event."""
    values = {"now": now, "kind": kind, "job_id": job_id, "worker": worker, "detail": Jsonb(detail or {})}
    await connection.execute(NOTE, values)
