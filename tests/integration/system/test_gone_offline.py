"""Runners that lose their connection: their board comes back, and nobody who works is touched."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.simulators.cluster import Behaviour
from tests.integration.system.reading import any_failed, failed_worker, step_until
from tests.systems import System, a_pool, a_system

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}
BOARD = "rv1-1"


async def an_idle_runner(system: System) -> str:
    """A runner that was seen online; its job was cancelled before it came."""
    (job_id,) = system.queue("acme/widgets", "rv1")
    await system.turn()
    system.github.sim.cancel_job(job_id)

    async def seen_online() -> bool:
        return bool(await system.rows("SELECT 1 FROM workers WHERE online_at IS NOT NULL"))

    await step_until(system, seen_online)
    (row,) = await system.rows("SELECT name FROM workers")
    return str(row["name"])


def cut_off(system: System, name: str) -> str:
    """The connection of an idle runner breaks, and it gets no other one; the name of the fault."""
    rule = system.github.sim.faults.add(operation="runner/job", hold="before", times=None)
    runner = system.github.sim.world.runner_named(name)
    assert runner is not None
    runner.wake.set()  # its open poll ends, and the next one is the one that is kept
    return rule.name


async def test_a_runner_that_went_offline_does_not_hold_its_board_for_ever(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        name = await an_idle_runner(system)
        fault = cut_off(system, name)
        for _ in range(16):
            await system.step(30)
        assert await system.statuses("workers") == {"running": 1}  # it may come back
        (row,) = await system.rows("SELECT idle_since, online_at FROM workers")
        assert row["online_at"] is not None
        assert row["idle_since"] is None  # listed, but offline
        await step_until(system, any_failed(system), 30)
        await failed_worker(system, "runner_idle")
        assert system.github.sim.ledger.runner(name).removed_why == "deleted"
        system.github.sim.faults.remove(fault)
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))


async def test_a_runner_that_comes_back_in_time_is_kept(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        name = await an_idle_runner(system)
        fault = cut_off(system, name)
        for _ in range(8):
            await system.step(30)
        system.github.sim.faults.remove(fault)
        for _ in range(4):
            await system.step(30)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.until(system.finished([job_id]))
        (job,) = await system.rows("SELECT runner_name FROM jobs WHERE job_id = %(id)s", id=job_id)
        assert job["runner_name"] == name


@pytest.mark.parametrize(
    ("was_online", "reason"), [(False, "runner_never_registered"), (True, "runner_removed")]
)
async def test_a_registration_that_github_removed_after_a_day_offline(
    database_url: str, tmp_path: Path, was_online: bool, reason: str
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        if was_online:
            name = await an_idle_runner(system)
            cut_off(system, name)
        else:
            system.cluster.set_board_behaviour(BOARD, Behaviour(hang=True))
            (job_id,) = system.queue("acme/widgets", "rv1")
            await system.turn()
            (row,) = await system.rows("SELECT name FROM workers")
            name = str(row["name"])
            system.github.sim.cancel_job(job_id)
        await system.clock.advance(timedelta(days=1, minutes=10))  # nobody leads all the while
        await system.settle()
        assert system.github.sim.ledger.runner(name).removed_why == "offline_too_long"
        await step_until(system, any_failed(system))
        await failed_worker(system, reason)
        system.github.sim.faults.clear()
        system.cluster.set_board_behaviour(BOARD, Behaviour())
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        assert await system.rows("SELECT 1 FROM holds") == []
