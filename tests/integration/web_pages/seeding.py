"""Rows for the pages, written by SQL; a test names only the fields it is about."""

from datetime import datetime, timedelta
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from controller.gateways.postgres.database import Database
from tests.clocks import EPOCH as NOW

LABELS = ["ubuntu-24.04-riscv"]
JSON_COLUMNS = {"skip_detail", "failure_info", "detail"}


def ago(**span: float) -> datetime:
    """A time before the tests' now."""
    return NOW - timedelta(**span)


class Seed:
    """Inserts rows with sensible defaults."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def job(self, job_id: int, status: str = "pending", **fields: Any) -> None:
        """A job of example-org, ten minutes old."""
        created = fields.get("created_at", ago(minutes=10))
        await self._insert(
            "jobs",
            {
                "job_id": job_id,
                "name": f"build {job_id}",
                "html_url": f"https://github.com/example-org/llvm/actions/runs/77/job/{job_id}",
                "entity_id": 500,
                "entity_name": "example-org",
                "entity_type": "Organization",
                "repo": "example-org/llvm",
                "app_id": "111",
                "installation_id": 9,
                "labels": LABELS,
                "pool": "scw-em-rv1",
                "run_id": 77,
                "status": status,
                "heard_at": created,
                "poll_at": created,
                "created_at": created,
                "seen_at": created,
                "updated_at": created,
                **fields,
            },
        )

    async def worker(self, name: str, status: str = "running", **fields: Any) -> None:
        """A worker of example-org, five minutes old."""
        created = fields.get("created_at", ago(minutes=5))
        await self._insert(
            "workers",
            {
                "name": name,
                "entity_id": 500,
                "entity_name": "example-org",
                "entity_type": "Organization",
                "app_id": "111",
                "installation_id": 9,
                "labels": LABELS,
                "pool": "scw-em-rv1",
                "image": "ghcr.io/example/runner:prod",
                "status": status,
                "created_at": created,
                "updated_at": created,
                **fields,
            },
        )

    async def board(self, node: str, state: str = "free", **fields: Any) -> None:
        """A board that was seen just now."""
        defaults = {"node": node, "board": "scw-em-rv1", "state": state, "slots": 1}
        await self._insert("boards", {**defaults, "heartbeat_at": NOW, "updated_at": NOW, **fields})

    async def event(self, kind: str, **fields: Any) -> None:
        """Something that happened a minute ago."""
        await self._insert("events", {"at": ago(minutes=1), "source": "webhook", "kind": kind, **fields})

    async def hold(self, scope: str, target: str, why: str = "pause", **fields: Any) -> None:
        """A hold without an end."""
        defaults = {"scope": scope, "target": target, "why": why, "who": "admin", "created_at": NOW}
        await self._insert("holds", {**defaults, **fields})

    async def run(self, statement: str) -> None:
        """Any other statement."""
        async with self._database.transaction() as connection:
            await connection.execute(statement.encode())

    async def _insert(self, table: str, fields: dict[str, Any]) -> None:
        statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, fields)),
            sql.SQL(", ").join(map(sql.Placeholder, fields)),
        )
        values = {
            name: Jsonb(value) if name in JSON_COLUMNS and value is not None else value
            for name, value in fields.items()
        }
        async with self._database.transaction() as connection:
            await connection.execute(statement, values)
