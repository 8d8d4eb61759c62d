"""Controllers that stop and start again while the world goes on, and the schedules that they follow."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from controller.app import World, open_controller
from controller.gateways.postgres.intake import Intake
from tests.systems import PATIENCE, System


async def stop(system: System) -> None:
    """The controller ends as on SIGTERM; GitHub, boards and database go on."""
    told = asyncio.Event()
    told.set()
    await system.controller.loop.run(told)


@asynccontextmanager
async def started_again(system: System, directory: Path) -> AsyncIterator[None]:
    """Another controller on the same world."""
    intake = Intake(system.database, system.file.catalogue)
    world = World(system.clock, random.Random(9), directory / "kubeconfig")
    async with open_controller(system.file, system.database, intake, world, system.metrics) as controller:
        await controller.cluster.synced()
        system.controller = controller
        try:
            yield
        finally:
            await controller.beside.stop()


async def turn(system: System) -> None:
    """One iteration as leader; on a machine that is very busy leadership may have to be taken again first."""
    for _ in range(PATIENCE):
        await system.turn()
        if system.controller.loop.snapshot().leads:
            return
    raise AssertionError("it never led")


async def go_to(system: System, moment: datetime) -> None:
    """Let the time come without an iteration."""
    await system.clock.advance(moment - system.clock.now())


async def pass_time(system: System, span: timedelta, steps: int) -> None:
    """Let time pass in equal steps with an iteration after each."""
    for _ in range(steps):
        await system.step((span / steps).total_seconds())


def a_schedule(name: str, kind: str, spec: str, action: str, **more: Any) -> dict[str, Any]:
    """An entry of `schedules:`."""
    given = more.pop("given", {})
    return {"name": name, "type": kind, "spec": spec, "action": action, "with": given, **more}


def warm(labels: Sequence[str] = ("rv1",), runners: int = 1, span: str = "2h", **more: Any) -> dict[str, Any]:
    """The arguments of `warm` for acme."""
    return {"entity": "acme", "labels": list(labels), "runners": runners, "for": span, **more}


async def occurrences(system: System) -> list[dict[str, Any]]:
    """The occurrences, oldest first."""
    return await system.rows(
        "SELECT schedule, due_at, status, reason, slots, result, error, run_id, attempts, retry_after FROM occurrences"
        " ORDER BY due_at, id"
    )
