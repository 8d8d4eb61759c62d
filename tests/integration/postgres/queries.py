"""Looking at the tables from a test."""

from typing import Any

from controller.gateways.postgres.database import Database


async def rows(database: Database, query: str, **values: Any) -> list[dict[str, Any]]:
    """All rows of a query."""
    async with database.transaction() as connection:
        return await (await connection.execute(query.encode(), values)).fetchall()


async def the_job(database: Database) -> dict[str, Any]:
    """The only row of `jobs`."""
    (row,) = await rows(database, "SELECT * FROM jobs")
    return row


async def counts(database: Database) -> tuple[int, int]:
    """How many jobs and events there are."""
    (row,) = await rows(
        database, "SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM events) AS events"
    )
    return row["jobs"], row["events"]


async def clear(database: Database) -> None:
    """Empty what the intake writes, between the examples of a property."""
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM events")
        await connection.execute("DELETE FROM jobs")
