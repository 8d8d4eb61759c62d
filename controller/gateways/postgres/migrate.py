"""Migrations: numbered SQL files, each applied once, safe twice and from two places at once.

Each file's first line, `-- serves: X.Y.Z`, names the oldest program that still works on the database after it. A
program refuses a database only if that is newer than itself, so one release back always works.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files

import structlog
from psycopg import sql

from controller import __version__
from controller.errors import SchemaMismatch, StoreUnavailable
from controller.gateways.postgres.database import Connection, Database, identifier, store_errors
from controller.ports import Clock

log = structlog.get_logger()

LOCK_KEY = 0x5B0A2D01
RETRY = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema."""

    version: int
    name: str
    serves: str
    text: str


def migrations() -> tuple[Migration, ...]:
    """All migrations of this program, in order."""
    found = []
    for file in (files("controller.gateways.postgres") / "migrations").iterdir():
        named = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if named is None:
            continue
        text = file.read_text(encoding="utf-8")
        serves = re.match(r"-- serves: (\d+\.\d+\.\d+)\n", text)
        if serves is None:
            raise SchemaMismatch(f"{file.name}: its first line must say which program it serves")
        found.append(Migration(int(named[1]), named[2], serves[1], text))
    return tuple(sorted(found, key=lambda migration: migration.version))


def as_numbers(version: str) -> tuple[int, ...]:
    """A version in the form in which versions are compared."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


HISTORY = """
CREATE TABLE IF NOT EXISTS migrations (
    version integer PRIMARY KEY, name text NOT NULL, serves text NOT NULL, applied_at timestamptz NOT NULL)
"""
APPLIED = "SELECT version FROM migrations"
RECORD = """
INSERT INTO migrations (version, name, serves, applied_at)
VALUES (%(version)s, %(name)s, %(serves)s, %(now)s)
"""


async def migrate(database: Database, now: datetime, steps: tuple[Migration, ...] | None = None) -> list[str]:
    """Apply what is missing, all in one transaction; the names of what was applied."""
    connection = await database.connect()
    done: list[str] = []
    with store_errors():
        async with connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%(key)s)", {"key": LOCK_KEY})
            await _ensure_schema(connection, database.schema)
            await connection.execute(HISTORY)
            applied = {row["version"] for row in await (await connection.execute(APPLIED)).fetchall()}
            for step in steps if steps is not None else migrations():
                if step.version in applied:
                    continue
                await connection.execute(step.text.encode())
                await connection.execute(
                    RECORD,
                    {"version": step.version, "name": step.name, "serves": step.serves, "now": now},
                )
                done.append(f"{step.version:04d}_{step.name}")
    return done


SCHEMA = "SELECT to_regnamespace(%(schema)s) IS NOT NULL AS known"


async def _ensure_schema(connection: Connection, schema: str) -> None:
    """Make the schema; one that an administrator made needs no right to make schemas."""
    row = await (await connection.execute(SCHEMA, {"schema": schema})).fetchone()
    if row is None or not row["known"]:
        await connection.execute(sql.SQL("CREATE SCHEMA {}").format(identifier(schema)))


KNOWN = "SELECT to_regclass(%(table)s) IS NOT NULL AS known"
STATE = "SELECT version, serves FROM migrations ORDER BY version"


async def check_schema(database: Database, program: str = __version__) -> None:
    """SchemaMismatch unless the database serves this program."""
    async with database.transaction() as connection:
        await require_schema(connection, database.schema, program)


async def require_schema(connection: Connection, schema: str, program: str) -> None:
    """The check itself, on a connection at hand."""
    known = await (await connection.execute(KNOWN, {"table": f"{schema}.migrations"})).fetchone()
    if known is None or not known["known"]:
        raise SchemaMismatch("the database is empty: run `switchboard migrate`")
    rows = await (await connection.execute(STATE)).fetchall()
    missing = {step.version for step in migrations()} - {row["version"] for row in rows}
    if missing:
        raise SchemaMismatch(f"migration {min(missing)} is not applied: run `switchboard migrate`")
    oldest = max((row["serves"] for row in rows), key=as_numbers, default="0.0.0")
    if as_numbers(oldest) > as_numbers(program):
        raise SchemaMismatch(f"the database serves programs from {oldest} on; this is {program}")


async def ping(database: Database) -> None:
    """StoreUnavailable unless the database answers."""
    connection = await database.connect()
    try:
        with store_errors():
            await connection.execute("SELECT 1")
    finally:
        await connection.close()


async def wait_for_database(database: Database, clock: Clock, every: timedelta = RETRY) -> None:
    """Return once the database answers; for `migrate --wait`, which starts together with it."""
    while True:
        try:
            return await ping(database)
        except StoreUnavailable as error:
            log.info("database.awaited", error=str(error))
        await clock.sleep(every)


__all__ = ["Migration", "check_schema", "migrate", "migrations", "ping", "wait_for_database"]
