"""How GitHub writes times, node ids and addresses."""

import base64
from datetime import UTC, datetime

HTML = "https://github.com"


def stamp(moment: datetime) -> str:
    """2026-01-31T12:00:00Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def maybe_stamp(moment: datetime | None) -> str | None:
    """A time, or null."""
    return None if moment is None else stamp(moment)


def node_id(kind: str, number: int) -> str:
    """The opaque id of GraphQL."""
    return base64.b64encode(f"{kind}{number}".encode()).decode()
