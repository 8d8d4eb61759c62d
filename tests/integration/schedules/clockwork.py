"""The schedules' step alone on real PostgreSQL, with a clock that a test may set to any time, also backwards."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.github.groups import RunnerGroup
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.leader import Leadership
from controller.gateways.postgres.occurrences import OccurrenceStore
from controller.gateways.postgres.schedules import ScheduleStore
from controller.reconcile.beside import Beside
from controller.reconcile.occurrences import OccurrenceWork
from controller.reconcile.schedules import ScheduleStep
from controller.settings import File, parse_file
from controller.telemetry.metrics import Metrics
from tests.systems import a_pool

START = datetime(2026, 1, 1, tzinfo=UTC)
APPS = {"Organization": {"appId": "111", "privateKeyFile": "none.pem"}}


class AnyTime:
    """A clock that is set, not run."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def now(self) -> datetime:
        """What it was set to."""
        return self.at

    async def sleep(self, delay: timedelta) -> None:
        """Nobody sleeps on it."""
        await asyncio.sleep(0)


def a_file(schedules: Sequence[dict[str, Any]], **more: Any) -> File:
    """Settings with these schedules and the pool rv1."""
    mistakes: list[str] = []
    raw = {"github": {"apps": APPS}, "pools": [a_pool("rv1")], "schedules": list(schedules), **more}
    file = parse_file(raw, mistakes)
    assert file is not None, mistakes
    return file


class Clockwork:
    """One process as far as schedules go; `run` is one iteration."""

    def __init__(self, database: Database, file: File, clock: AnyTime, seed: int = 1) -> None:
        self.clock = clock
        self.metrics = Metrics()
        self._leadership = Leadership(database, f"clockwork {seed}")
        group = RunnerGroup("group", "all", True)
        github = GitHubGateway("http://127.0.0.1:9", {}, clock, runner_group=group, observe=lambda seen: None)
        rows = OccurrenceStore(database, f"clockwork {seed}")

        async def prune(epoch: int) -> bool:
            return False

        work = OccurrenceWork(file, rows, github, prune, clock, self.metrics)
        self.beside = Beside(lambda: None)
        self.step = ScheduleStep(
            file, ScheduleStore(database), rows, work, clock, random.Random(seed), self.metrics, self.beside
        )

    async def run(self, epoch: int | None = None) -> None:
        """Lead if need be, and fire what is due."""
        if epoch is None:
            assert await self._leadership.acquire(self.clock.now())
            epoch = self._leadership.epoch
        assert epoch is not None
        await self.step.run(epoch)
        await self.beside.idle()

    async def end(self) -> None:
        """As a process ends."""
        await self.beside.stop()
        await self._leadership.drop()


async def rows(database: Database, query: str, **values: Any) -> list[dict[str, Any]]:
    """Ask the database itself."""
    async with database.transaction() as connection:
        cursor = await connection.execute(query, values)
        return await cursor.fetchall() if cursor.description else []


async def fired(database: Database, schedule: str) -> list[datetime]:
    """The due times for which an event says that the action was done, oldest first."""
    found = await rows(
        database,
        "SELECT detail->>'due' AS due FROM events WHERE kind IN ('schedule.fired', 'schedule.caught_up')"
        " AND detail->>'schedule' = %(schedule)s ORDER BY id",
        schedule=schedule,
    )
    return [datetime.fromisoformat(row["due"]) for row in found]


async def statuses(database: Database, schedule: str) -> dict[str, int]:
    """How many occurrences there are of each status."""
    found = await rows(
        database,
        "SELECT status, count(*) AS rows FROM occurrences WHERE schedule = %(schedule)s GROUP BY status",
        schedule=schedule,
    )
    return {row["status"]: row["rows"] for row in found}
