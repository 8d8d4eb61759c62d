"""Webhooks are the truth, polling repairs: what becomes of jobs of which nothing was heard."""

from datetime import timedelta
from pathlib import Path

from controller.simulators.github import WebhookRule
from tests.systems import System, a_pool, a_system

NO_BOARDS = {"rv1": 0}
POOLS = [a_pool("rv1")]


async def job_row(system: System) -> tuple[str, str | None, dict[str, str]]:
    (row,) = await system.rows("SELECT status, conclusion, failure_info FROM jobs")
    return row["status"], row["conclusion"], row["failure_info"] or {}


async def test_a_job_that_github_does_not_know_is_failed_at_the_second_look(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards=NO_BOARDS) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.hide_job(job_id, timedelta(days=1), in_list=True)
        await system.step(61)
        assert (await job_row(system))[0] == "pending"  # one 404 proves nothing
        await system.step(61)
        status, _, info = await job_row(system)
        assert (status, info["reason"]) == ("failed", "not_found")


async def test_a_job_that_is_hidden_for_a_while_is_not_failed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards=NO_BOARDS) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.hide_job(job_id, timedelta(seconds=90), in_list=True)
        for _ in range(10):
            await system.step(61)
        assert (await job_row(system))[0] == "pending"


async def test_a_job_still_queued_in_a_completed_run_is_failed_after_ten_minutes(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards=NO_BOARDS) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.end_run(system.github.sim.ledger.job(job_id).run_id)
        for _ in range(9):
            await system.step(60)
        assert (await job_row(system))[0] == "pending"
        for _ in range(12):
            await system.step(60)
        status, _, info = await job_row(system)
        assert (status, info["reason"]) == ("failed", "stuck_queued")


async def test_an_end_that_was_never_told_is_noticed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards=NO_BOARDS) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.faults.webhooks.rules.append(WebhookRule("lose", action="completed"))
        system.github.sim.cancel_job(job_id)
        await system.step(61)
        assert (await job_row(system))[:2] == ("completed", "cancelled")


async def test_a_queued_that_never_arrived_is_pulled_from_githubs_list(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        await system.turn()
        system.github.sim.faults.webhooks.rules.append(WebhookRule("fail", action="queued"))
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        (row,) = await system.rows("SELECT learnt_from FROM jobs")
        assert row["learnt_from"] == "pull"
