"""A program that cannot end in time says what was under way, and ends all the same."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import structlog

from controller.app import Parts, World, serve
from controller.gateways.postgres.database import Database
from controller.settings import load_settings
from tests.grounds import a_ground
from tests.postgres import opened
from tests.waiting import until

NEEDED = frozenset({"DATABASE_URL", "GITHUB_WEBHOOK_SECRET"})


async def somebody_waits(database: Database) -> bool:
    """Whether a statement waits for a lock."""
    async with database.transaction() as connection:
        waiting = await connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
        return bool(await waiting.fetchall())


@pytest.mark.parametrize("stuck", [True, False])
async def test_what_does_not_end_in_time_is_named(database_url: str, tmp_path: Path, stuck: bool) -> None:
    stop, serving = asyncio.Event(), asyncio.Event()
    async with a_ground(database_url, tmp_path) as ground, opened(database_url) as database:
        settings = load_settings(None, ground.environment, needs=NEEDED)
        kubeconfig = Path(ground.environment["KUBECONFIG"])
        limit = timedelta(seconds=1 if stuck else 30)
        world = World(kubeconfig=kubeconfig, shutdown_limit=limit)
        with structlog.testing.capture_logs() as logs:
            async with database.transaction() as connection:
                if stuck:
                    await connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
                running = asyncio.create_task(
                    serve(settings, Parts(True, True), world, stop=stop, on_serving=lambda url: serving.set())
                )
                await serving.wait()
                if stuck:
                    await until(partial(somebody_waits, database))
                stop.set()
                code = await running
    said = {line["event"]: line for line in logs}
    if stuck:
        assert code == 1
        assert said["shutdown.timed_out"]["under_way"]
        assert said["shutdown.timed_out"]["log_level"] == "error"
    else:
        assert code == 0
        assert "program.stopped" in said
