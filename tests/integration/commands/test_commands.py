"""Every command from the outside: what it prints, and how it ends."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from controller.gateways.postgres.migrate import migrations
from controller.simulators.github import JobSpec
from tests.children import a_child, run
from tests.grounds import POOL, a_ground
from tests.postgres import opened
from tests.waiting import until
from tests.worlds import plain_http


@pytest.mark.parametrize("command", ["all", "controller", "webhook"])
async def test_a_stopped_program_ends_in_order(database_url: str, tmp_path: Path, command: str) -> None:
    async with (
        a_ground(database_url, tmp_path) as ground,
        a_child(command, environment=ground.environment) as child,
    ):
        async with httpx.AsyncClient(base_url=child.url, transport=plain_http()) as client:
            assert (await client.get("/health")).status_code == 200
            posted = (await client.post("/webhook", content=b"{}")).status_code
            assert posted == (401 if command in ("all", "webhook") else 404)
            assert (await client.get("/jobs")).status_code == (404 if command == "webhook" else 200)
        done = await child.end()
        assert (done.code, done.err) == (0, "")
    async with opened(database_url) as database, database.transaction() as connection:
        locks = await connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'")
        assert await locks.fetchall() == []  # leadership is released


async def test_what_is_under_way_when_the_program_is_stopped_is_finished(
    database_url: str, tmp_path: Path
) -> None:
    async with (
        a_ground(database_url, tmp_path) as ground,
        a_child("all", environment=ground.environment) as child,
    ):
        sim = ground.github.sim
        sim.faults.add(name="jit", operation="actions/generate-runner-jitconfig-for-org", hold="before")
        sim.webhook_url = f"{child.url}/webhook"
        sim.queue_run("acme/widgets", [JobSpec((POOL,), 0.1)])
        await sim.faults.wait_held("jit")
        child.terminate()
        stopping = await child.says("program.stopping")
        assert any(name.startswith("provision") for name in stopping["under_way"]), stopping
        sim.faults.release("jit")
        assert (await child.ended()).code == 0
        assert len(ground.cluster.pods()) == 1  # its pod was made all the same
        assert child.said("program.stopped")


async def test_a_bad_setting_ends_with_2_and_every_mistake(tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text(json.dumps({"pools": [{"name": "x"}], "colour": "blue", "scheduling": "random"}))
    done = await run("all", "--config", str(config))
    assert (done.code, done.out) == (2, "")
    for key in ("github", "pools.0.labels", "pools.0.image", "colour", "scheduling"):
        assert f"  {key}" in done.err
    for secret in ("$DATABASE_URL", "$GITHUB_WEBHOOK_SECRET"):
        assert secret in done.err


async def test_without_a_webhook_secret_nothing_is_received(database_url: str, tmp_path: Path) -> None:
    async with a_ground(database_url, tmp_path) as ground:
        environment = {k: v for k, v in ground.environment.items() if k != "GITHUB_WEBHOOK_SECRET"}
        done = await run("webhook", environment=environment)
        assert done.code == 2
        assert "$GITHUB_WEBHOOK_SECRET" in done.err


async def test_migrate_applies_once_and_a_program_without_it_says_so(
    empty_database_url: str, tmp_path: Path
) -> None:
    async with a_ground(empty_database_url, tmp_path) as ground:
        refused = await run("all", environment=ground.environment)
        assert refused.code == 1
        assert "run `switchboard migrate`" in refused.err
        first = await run("migrate", "--wait", environment=ground.environment)
        names = [f"applied {step.version:04d}_{step.name}" for step in migrations()]
        assert (first.code, first.out.splitlines()) == (0, names)
        assert (await run("migrate", environment=ground.environment)).out == "nothing to apply\n"


async def test_plan_says_what_would_be_done_and_does_nothing(database_url: str, tmp_path: Path) -> None:
    async with a_ground(database_url, tmp_path, boards=1) as ground:
        assert "nothing to do" in (await run("plan", environment=ground.environment)).out
        sim = ground.github.sim
        async with a_child("webhook", environment=ground.environment) as receiver:
            sim.webhook_url = f"{receiver.url}/webhook"
            jobs = sim.queue_run("acme/widgets", [JobSpec((POOL,)), JobSpec((POOL,))]).jobs
            await sim.webhooks.sent()
        asked = len(sim.requests)
        done = await run("plan", environment=ground.environment)
        assert done.code == 0
        assert f"start  job {jobs[0].id}  acme/widgets  [{POOL}]" in done.out
        assert f"pool {POOL}, a slot of {POOL}-1" in done.out
        assert f"skip   job {jobs[1].id}  acme/widgets  [{POOL}]  no_free_slots" in done.out
        assert "No board of this type is free." in done.out
        assert len(sim.requests) == asked
        assert ground.cluster.pods() == []
        async with opened(database_url) as database, database.transaction() as connection:
            workers = await connection.execute("SELECT 1 FROM workers")
            assert await workers.fetchall() == []
            unexplained = await connection.execute("SELECT 1 FROM jobs WHERE skip_reason IS NULL")
            assert len(await unexplained.fetchall()) == 2


@pytest.mark.parametrize("away", [{"status": 403}, {"drop": "before"}], ids=["refused", "away"])
async def test_a_command_that_cannot_see_the_cluster_says_what_is_unknown_and_why(
    database_url: str, tmp_path: Path, away: dict[str, Any]
) -> None:
    async with a_ground(database_url, tmp_path, boards=1) as ground:
        ground.cluster.faults.add(operation="(list|watch) .*", times=None, **away)
        withdrawn, planned = await asyncio.gather(
            run("boards", "--withdraw", environment=ground.environment, within=90),
            run("plan", environment=ground.environment, within=90),
        )
    for done, unknown in ((withdrawn, ("nodes",)), (planned, ("nodes", "pods"))):
        assert done.code == 1
        (said,) = [line for line in done.err.splitlines() if line.startswith("switchboard: ")]
        assert said.startswith("switchboard: ClusterUnavailable: ")
        assert all(f"{kind} cannot be watched" in said for kind in unknown), said
        assert "Traceback" not in done.err + done.out


async def test_a_job_goes_from_webhook_to_completed_through_the_command_alone(
    database_url: str, tmp_path: Path
) -> None:
    async with (
        a_ground(database_url, tmp_path) as ground,
        a_child("all", environment=ground.environment) as child,
        httpx.AsyncClient(base_url=child.url, transport=plain_http()) as client,
    ):
        ground.github.sim.webhook_url = f"{child.url}/webhook"
        job = ground.github.sim.queue_run("acme/widgets", [JobSpec((POOL,), 0.1)]).jobs[0]

        async def completed() -> bool:
            answer = await client.get(f"/jobs/{job.id}.json")
            return answer.status_code == 200 and answer.json()["job"]["status"] == "completed"

        await until(completed)
        assert (await child.end()).code == 0
