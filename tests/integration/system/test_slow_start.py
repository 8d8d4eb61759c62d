"""An image that nobody has seen work is tried by a few runners first, through the whole system."""

from bisect import bisect_left
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from controller.app import print_plan
from controller.app.world import World
from controller.domain.controls import Target
from controller.domain.holds import HoldScope
from controller.gateways.postgres.controls import ControlStore
from controller.gateways.postgres.pages import PageStore
from controller.web.admin import Admin
from controller.web.reader import PageDeps
from controller.web.routes import page_routes
from tests.integration.system.reading import jit_calls, waiting_job
from tests.systems import IMAGE, System, a_pool, a_system

TWELVE: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 12}}
TEN_MINUTES = timedelta(minutes=10)


def most_jit_calls(system: System, within: timedelta) -> int:
    """The most runners that were asked for in any stretch of time so long."""
    at: list[datetime] = [e.at for e in system.github.sim.requests if "generate-runner-jit" in e.operation]
    return max((number + 1 - bisect_left(at, when - within) for number, when in enumerate(at)), default=0)


def at_work(system: System) -> int:
    """How many jobs run."""
    return len([job for job in system.github.sim.ledger.jobs() if job.status == "in_progress"])


async def overview(system: System) -> str:
    """What `/` says to somebody who is not signed in."""
    status, render = system.controller.loop, system.metrics.render
    admin = Admin(None, system.clock)
    deps = PageDeps(PageStore(system.database), system.clock, status, system.file, render, admin)
    transport = httpx.ASGITransport(Starlette(routes=page_routes(deps)))
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as browser:
        return unescape((await browser.get("/")).text)


@pytest.mark.timeout(300)
async def test_an_image_refused_with_exit_7_costs_five_jit_calls_in_ten_minutes_and_the_overview_says_why(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **TWELVE) as system:
        system.github.sim.refuse_runner_versions("acme", "9.0.0")
        system.queue("acme/widgets", "rv1", jobs=16, seconds=3600)
        await system.turn()
        assert f"the image {IMAGE} has not been seen working in the last 6h" in await overview(system)
        for _ in range(40):  # ten minutes
            await system.step(15)
            assert "the image was refused: runner version refused" in await overview(system)
        assert 1 < jit_calls(system) <= 5
        # An hour; then until its failures are forgotten one after the other, and a while after that.
        for steps, seconds in ((50, 60), (30, 600), (15, 60)):
            for _ in range(steps):
                await system.step(seconds)
        assert most_jit_calls(system, TEN_MINUTES) <= 5
        assert "the image was refused: runner version refused" in await overview(system)
        system.github.sim.refuse_runner_versions("acme", None)
        await system.until(lambda: at_work(system) == 12, 30)


async def test_an_image_that_is_refused_after_it_worked_costs_each_board_one_runner_and_then_two_an_hour(
    database_url: str, tmp_path: Path
) -> None:
    """Nobody can know before the first refusal; from then on it is as with any other."""
    async with a_system(database_url, tmp_path, **TWELVE) as system:
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        before = jit_calls(system)
        system.github.sim.refuse_runner_versions("acme", "9.0.0")
        system.queue("acme/widgets", "rv1", jobs=30, seconds=3600)
        for _ in range(40):  # ten minutes
            await system.step(15)
        assert jit_calls(system) == before + 12
        assert "the image was refused: runner version refused" in await overview(system)
        for _ in range(60):
            await system.step(60)
        assert before + 12 < jit_calls(system) <= before + 12 + 3


@pytest.mark.timeout(300)
async def test_pools_of_one_refused_image_cost_no_more_than_one_and_one_resume_has_it_tried_again(
    database_url: str, tmp_path: Path
) -> None:
    pools, boards = [a_pool("rv1"), a_pool("rv2")], {"rv1": 6, "rv2": 6}
    async with a_system(database_url, tmp_path, pools=pools, boards=boards) as system:
        system.github.sim.refuse_runner_versions("acme", "9.0.0")
        for pool in ("rv1", "rv2") * 2:
            system.queue("acme/widgets", pool, jobs=4, seconds=3600)
        await system.turn()
        await system.step(15)
        assert {hold["target"] for hold in await system.rows("SELECT target FROM holds")} == {"rv1", "rv2"}
        for _ in range(39):  # ten minutes
            await system.step(15)
            told = await system.rows("SELECT DISTINCT skip_detail FROM jobs WHERE skip_reason = 'held'")
            assert {row["skip_detail"]["target"] for row in told} == {"rv1", "rv2"}
            assert all("the image was refused" in row["skip_detail"]["note"] for row in told)
        assert 1 < jit_calls(system) <= 5
        assert {row["pool"] for row in await system.rows("SELECT pool FROM workers")} == {"rv1"}
        system.github.sim.refuse_runner_versions("acme", None)
        controls = ControlStore(system.database)
        await controls.resume(Target(HoldScope.POOL, "rv2"), "ada", "a new runner", system.clock.now())
        await system.turn()
        assert await system.rows("SELECT 1 FROM holds WHERE why = 'breaker'") == []
        await system.until(lambda: at_work(system) == 12, 15)


async def test_jobs_wait_for_those_who_try_and_then_all_boards_work(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **TWELVE) as system:
        ids = system.queue("acme/widgets", "rv1", jobs=12, seconds=600)
        await system.settle()
        await system.controller.loop.turn()
        await system.controller.beside.idle()
        assert jit_calls(system) == 4
        waiting = await system.rows("SELECT job_id FROM jobs WHERE skip_reason = 'held' ORDER BY job_id")
        assert [row["job_id"] for row in waiting] == ids[4:]
        (job,) = await system.rows("SELECT skip_detail FROM jobs WHERE job_id = %(id)s", id=ids[-1])
        assert "4 runners at a time try it" in job["skip_detail"]["note"]
        await system.until(lambda: at_work(system) == 12, 2)
        assert jit_calls(system) == 12


async def test_an_image_that_worked_an_hour_ago_is_trusted_and_another_one_is_not(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **TWELVE) as system:
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        for _ in range(12):
            await system.step(300)
        before = jit_calls(system)
        ids = system.queue("acme/widgets", "rv1", jobs=12)
        await system.turn()
        assert jit_calls(system) == before + 12
        await system.until(system.finished(ids))
        async with system.database.transaction() as connection:  # as if the pool had had another image then
            await connection.execute("UPDATE workers SET image = 'registry.example/runner:0'")
        before = jit_calls(system)
        await system.clock.advance(timedelta(seconds=60))
        ids = system.queue("acme/widgets", "rv1", jobs=12)
        await system.settle()
        await system.controller.loop.turn()
        await system.controller.beside.idle()
        assert jit_calls(system) == before + 4
        await system.until(system.finished(ids))


async def test_the_reason_is_told_everywhere(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_system(database_url, tmp_path, **TWELVE) as system:
        system.github.sim.faults.add(operation="runner/session", status=500, times=None)
        ids = system.queue("acme/widgets", "rv1", jobs=6)
        await system.turn()
        await waiting_job(system, ids[-1], "held")
        world = World(system.clock, kubeconfig=tmp_path / "kubeconfig")
        assert await print_plan(system.settings, world) == 0
        assert f"the image {IMAGE} has not been seen working in the last 6h" in capsys.readouterr().out
