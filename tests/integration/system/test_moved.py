"""Owners that move under live rows: renamed, or with the App installed anew."""

from pathlib import Path

from tests.systems import System, a_pool, a_system

TIMINGS = {"idleTimeout": "2m"}


async def an_idle_runner(system: System, repo: str = "acme/widgets") -> str:
    """A runner that is online and whose job was cancelled."""
    (job_id,) = system.queue(repo, "rv1")
    await system.turn()
    system.github.sim.cancel_job(job_id)
    for _ in range(3):
        await system.step(10)
    (runner,) = (each for each in system.github.sim.ledger.runners() if each.removed_at is None)
    return runner.name


async def test_an_idle_runner_of_an_app_that_was_installed_anew_gives_its_board_back(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, timings=TIMINGS
    ) as system:
        name = await an_idle_runner(system)
        system.github.sim.uninstall("acme")
        system.github.sim.reinstall("acme")
        for _ in range(30):
            await system.step(20)
        assert system.github.sim.ledger.runner(name).removed_at is not None
        (row,) = await system.rows("SELECT status, failure_reason FROM workers")
        assert (row["status"], row["failure_reason"]) == ("failed", "runner_idle")


async def test_an_idle_runner_of_an_organization_that_was_renamed_gives_its_board_back(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, timings=TIMINGS
    ) as system:
        name = await an_idle_runner(system)
        system.github.sim.rename_account("acme", "acme-labs")
        for _ in range(30):
            await system.step(20)
        assert system.github.sim.ledger.runner(name).removed_at is not None
        (row,) = await system.rows("SELECT status, failure_reason, entity_name FROM workers")
        assert row == {"status": "failed", "failure_reason": "runner_idle", "entity_name": "acme-labs"}


async def test_a_job_that_waits_while_its_organization_is_renamed_gets_its_runner(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.rename_account("acme", "acme-labs")
        system.cluster.add_board("rv1-1", {"riseproject.dev/board": "rv1"})
        for _ in range(30):
            await system.step(30)
        assert system.finished(ids)()
        (row,) = await system.rows("SELECT entity_name, repo FROM jobs")
        assert row == {"entity_name": "acme-labs", "repo": "acme/widgets"}  # the address that redirects


async def test_a_person_who_installs_the_app_anew_gets_an_idle_board_back(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, timings=TIMINGS
    ) as system:
        name = await an_idle_runner(system, "jane/one")
        system.github.sim.uninstall("jane")
        system.github.sim.reinstall("jane")
        for _ in range(30):
            await system.step(20)
        assert system.github.sim.ledger.runner(name).removed_at is not None
        assert await system.statuses("workers") == {"failed": 1}


async def test_a_runner_of_an_app_that_is_gone_is_left_alone(database_url: str, tmp_path: Path) -> None:
    """GitHub may give it a job all the same, and nobody would tell us."""
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, timings=TIMINGS
    ) as system:
        name = await an_idle_runner(system)
        system.github.sim.uninstall("acme")
        for _ in range(30):
            await system.step(20)
        assert system.github.sim.ledger.runner(name).removed_at is None
        assert await system.statuses("workers") == {"running": 1}


async def test_a_runner_that_got_a_job_while_its_end_was_pending_outlives_the_app(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        ids = system.queue("acme/widgets", "rv1", seconds=300)
        for _ in range(3):
            await system.step()
        async with system.database.transaction() as connection:
            await connection.execute(
                "UPDATE workers SET ending_reason = 'runner_idle', ending_since = created_at"
            )
        system.github.sim.uninstall("acme")
        await system.until(system.finished(ids), seconds=30)
        assert system.github.sim.ledger.job(ids[0]).conclusion == "success"
