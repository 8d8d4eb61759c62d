"""Queue controls through the whole system: what people write is what the loop does next."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from controller.gateways.postgres.controls import ControlStore
from controller.gateways.postgres.pages import PageStore
from controller.ports import Secret
from controller.simulators.cluster import Behaviour
from controller.web.admin import Admin
from controller.web.api import api_routes
from controller.web.reader import PageDeps
from controller.web.routes import error_handlers, page_routes
from tests.integration.schedules.lives import a_schedule, pass_time, warm
from tests.systems import PATIENCE, System, a_pool, a_system
from tests.waiting import until

TOKEN = "the-admin-token"


@asynccontextmanager
async def an_operator(system: System) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody with the token, at the system's API."""
    admin = Admin(Secret(TOKEN), system.clock)
    status, render = system.controller.loop, system.metrics.render
    deps = PageDeps(PageStore(system.database), system.clock, status, system.file, render, admin)
    routes = [*api_routes(deps, admin, ControlStore(system.database)), *page_routes(deps)]
    app = Starlette(routes=routes, exception_handlers=dict(error_handlers(deps)))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
        yield client


async def why(operator: httpx.AsyncClient, job_id: int) -> dict[str, Any]:
    """What the API explains of a job."""
    found: dict[str, Any] = (await operator.get(f"/api/jobs/{job_id}/explain")).json()
    return found


async def test_a_paused_pool_starts_nothing_and_says_so_on_the_job(database_url: str, tmp_path: Path) -> None:
    pools = [a_pool("rv1"), a_pool("rv2")]
    async with (
        a_system(database_url, tmp_path, pools=pools, boards={"rv1": 2, "rv2": 1}) as system,
        an_operator(system) as operator,
    ):
        await operator.post("/api/pools/rv1/pause", json={"note": "new firmware"})
        held, other = system.queue("acme/widgets", "rv1"), system.queue("acme/widgets", "rv2")
        await system.until(system.finished(other))
        assert await system.rows("SELECT name FROM workers WHERE pool = 'rv1'") == []
        explained = await why(operator, held[0])
        assert (explained["reason"], explained["detail"]["why"]) == ("held", "pause")
        assert explained["detail"]["note"] == "new firmware"
        await operator.post("/api/pools/rv1/resume")
        await system.until(system.finished(held))


async def test_a_pause_ends_by_itself_at_its_time(database_url: str, tmp_path: Path) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system,
        an_operator(system) as operator,
    ):
        await operator.post("/api/pools/rv1/pause", json={"for": "10m"})
        ids = system.queue("acme/widgets", "rv1")
        await system.step()
        until = system.clock.now() + timedelta(minutes=9)
        while system.clock.now() < until:
            await system.step(60)
            assert await system.rows("SELECT name FROM workers") == []
        await system.until(system.finished(ids), seconds=30)


async def test_a_paused_owner_starts_nothing_while_others_go_on(database_url: str, tmp_path: Path) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system,
        an_operator(system) as operator,
    ):
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        await operator.post("/api/entities/ACME/pause")
        held, other = system.queue("acme/widgets", "rv1"), system.queue("jane/one", "rv1")
        await system.until(system.finished(other))
        assert (await why(operator, held[0]))["detail"]["scope"] == "entity"
        assert not system.finished(held)()
        await operator.post("/api/entities/acme/resume")
        await system.until(system.finished(held))


async def test_a_drained_board_finishes_its_job_and_gets_no_new_one(
    database_url: str, tmp_path: Path
) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system,
        an_operator(system) as operator,
    ):
        running = system.queue("acme/widgets", "rv1", jobs=2, seconds=120)
        for _ in range(6):
            await system.step()
        assert await system.statuses() == {"running": 2}
        answer = await operator.post("/api/boards/rv1-1/drain", json={"note": "swap the SD card"})
        assert answer.json()["held"] is True
        (on_it,) = await system.rows("SELECT name FROM workers WHERE node = 'rv1-1'")
        later = system.queue("acme/widgets", "rv1", jobs=4, seconds=20)
        await system.until(system.finished([*running, *later]))
        await system.step()
        ended = await system.rows("SELECT name, status FROM workers WHERE node = 'rv1-1'")
        assert ended == [{"name": on_it["name"], "status": "completed"}]
        elsewhere = await system.rows("SELECT name FROM workers WHERE node = 'rv1-2'")
        assert len(elsewhere) == 5
        await operator.post("/api/boards/rv1-1/resume")
        both = system.queue("acme/widgets", "rv1", jobs=2, seconds=20)
        await system.until(system.finished(both))
        assert len(await system.rows("SELECT name FROM workers WHERE node = 'rv1-1'")) == 2


async def idle_runner(system: System) -> dict[str, Any]:
    """Step until a row says that a runner is online and idle."""
    for _ in range(PATIENCE):
        idle = await system.rows("SELECT name, node FROM workers WHERE idle_since IS NOT NULL")
        if idle:
            return idle[0]
        await system.step()
    raise AssertionError("no runner idles")


async def test_a_drained_board_loses_its_idle_runner_though_a_warm_window_wants_one(
    database_url: str, tmp_path: Path
) -> None:
    """Else it would not be idle for those who want to take it away, and the next job would go there all the same."""
    given = warm(span="7d")
    window = a_schedule("week", "one_shot", "2026-03-01T12:00:00+00:00", "warm", given=given)
    async with (
        a_system(
            database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[window]
        ) as system,
        an_operator(system) as operator,
    ):
        spare = await idle_runner(system)
        await operator.post(f"/api/boards/{spare['node']}/drain")
        await pass_time(system, timedelta(minutes=3), 36)  # idle runners end after ten
        there = "SELECT name, status, failure_reason FROM workers WHERE node = %(node)s"
        (ended,) = await system.rows(there, node=spare["node"])
        assert ended == {"name": spare["name"], "status": "failed", "failure_reason": "runner_idle"}
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        (job,) = await system.rows(
            "SELECT w.node FROM jobs j JOIN workers w ON w.name = j.runner_name WHERE j.job_id = %(id)s",
            id=ids[0],
        )
        assert job["node"] != spare["node"]
        assert len(await system.rows(there, node=spare["node"])) == 1


@pytest.mark.parametrize("target", ["pools/rv1", "entities/acme"])
async def test_a_pause_ends_idle_runners_so_that_the_next_job_is_held_as_it_says(
    database_url: str, tmp_path: Path, target: str
) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system,
        an_operator(system) as operator,
    ):
        (cancelled,) = system.queue("acme/widgets", "rv1")
        await system.step(1)
        system.github.sim.cancel_job(cancelled)
        await idle_runner(system)
        await operator.post(f"/api/{target}/pause")
        await pass_time(system, timedelta(minutes=3), 36)
        assert await system.statuses("workers") == {"failed": 1}
        ids = system.queue("acme/widgets", "rv1")
        await pass_time(system, timedelta(minutes=3), 36)
        assert await system.statuses("workers") == {"failed": 1}
        assert (await why(operator, ids[0]))["reason"] == "held"
        await operator.post(f"/api/{target}/resume")
        await system.until(system.finished(ids))


async def test_a_board_drained_while_a_worker_is_being_made_does_not_get_it(
    database_url: str, tmp_path: Path
) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system,
        an_operator(system) as operator,
    ):
        for board in ("rv1-1", "rv1-2"):
            rule = system.github.sim.faults.add(operation=".*jitconfig.*", hold="before")
            ids = system.queue("acme/widgets", "rv1")
            await system.settle()
            await system.controller.loop.turn()
            await rule.wait_held()
            await operator.post(f"/api/boards/{board}/drain")
            rule.release(drop=False)
            await system.until(system.finished(ids))
            (job,) = await system.rows("SELECT runner_name FROM jobs WHERE job_id = %(id)s", id=ids[0])
            (worker,) = await system.rows(
                "SELECT node FROM workers WHERE name = %(name)s", name=job["runner_name"]
            )
            assert worker["node"] != board
            await operator.post(f"/api/boards/{board}/resume")


async def test_pauses_and_drains_that_are_over_are_forgotten(database_url: str, tmp_path: Path) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system,
        an_operator(system) as operator,
    ):
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        await operator.post("/api/pools/rv1/pause", json={"for": "30m"})
        await operator.post("/api/boards/rv1-1/drain", json={"for": "30m"})
        await operator.post("/api/entities/acme/pause")
        await system.turn()
        assert len(await system.rows("SELECT 1 FROM holds")) == 3
        await system.step(3700)
        await system.step()
        (left,) = await system.rows("SELECT scope, target FROM holds")
        assert left == {"scope": "entity", "target": "acme"}  # until somebody resumes it


async def test_a_cancelled_job_gets_no_runner_until_it_is_retried(database_url: str, tmp_path: Path) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system,
        an_operator(system) as operator,
    ):
        (job_id,) = ids = system.queue("acme/widgets", "rv1")
        await system.step()
        assert (await why(operator, job_id))["reason"] == "no_free_slots"
        await operator.delete(f"/api/queue/{job_id}")
        system.cluster.add_board("late", {"riseproject.dev/board": "rv1"})
        for _ in range(3):
            await system.step()
        assert (await why(operator, job_id))["reason"] == "cancelled"
        assert await system.rows("SELECT name FROM workers") == []
        await operator.patch(f"/api/queue/{job_id}", json={"action": "retry"})
        await system.until(system.finished(ids))


async def test_a_write_rings_the_doorbell(database_url: str, tmp_path: Path) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system,
        an_operator(system) as operator,
    ):
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.step()
        place = f"/api/queue/{job_id}"

        async def rung() -> bool:
            return system.controller.loop.rung

        for method, address in (("DELETE", place), ("POST", "/api/pools/rv1/pause")):
            await system.turn()
            assert not system.controller.loop.rung
            assert (await operator.request(method, address)).status_code == 200
            await until(rung)


async def test_resuming_a_board_forgives_what_its_breaker_counted(database_url: str, tmp_path: Path) -> None:
    async with (
        a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}) as system,
        an_operator(system) as operator,
    ):
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        ids = system.queue("acme/widgets", "rv1", jobs=20, seconds=20)
        await system.until(system.finished(ids))
        held = await system.rows("SELECT target, why FROM holds")
        assert held == [{"target": "rv1-1", "why": "breaker"}]
        system.cluster.set_board_behaviour("rv1-1", Behaviour())
        assert (await operator.post("/api/boards/rv1-1/resume")).json()["held"] is False
        for _ in range(3):
            await system.step()
        assert await system.rows("SELECT target FROM holds") == []
        more = system.queue("acme/widgets", "rv1", jobs=3, seconds=20)
        await system.until(system.finished(more))
        good = await system.rows("SELECT 1 FROM workers WHERE node = 'rv1-1' AND status = 'completed'")
        assert good
