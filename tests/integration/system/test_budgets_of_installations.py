"""What an installation may still ask of GitHub: classes, pace, and that one does not pay for another."""

from datetime import datetime
from pathlib import Path
from typing import Any

from controller.simulators.cluster import Behaviour
from tests.integration.system.reading import asked, jit_calls, waiting_job
from tests.systems import a_pool, a_system

LISTS, RUN_JOBS = "list-self-hosted-runners-in-group", "list-jobs-for-workflow-run"
TWO_BOARDS: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 2}}


async def test_under_20_percent_repair_stops_and_under_5_percent_cleanup_too(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **TWO_BOARDS) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(hang=True))
        system.cluster.set_board_behaviour("rv1-2", Behaviour(hang=True))
        installation = system.github.scope("acme").installation_id
        system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.limits.exhaust(installation, leave=900)  # 18 %
        await system.step(61)
        repaired, listed = len(asked(system, RUN_JOBS)), len(asked(system, LISTS))
        for _ in range(4):
            await system.step(30)
        assert len(asked(system, RUN_JOBS)) <= repaired + 1  # the answer that told us how little is left
        assert len(asked(system, LISTS)) > listed
        repaired = len(asked(system, RUN_JOBS))
        system.github.sim.limits.exhaust(installation, leave=200)  # 4 %
        await system.step(61)
        listed = len(asked(system, LISTS))
        made = jit_calls(system)
        system.queue("acme/widgets", "rv1")
        for _ in range(6):
            await system.step(30)
        assert (len(asked(system, RUN_JOBS)), len(asked(system, LISTS))) == (repaired, listed)
        assert jit_calls(system) > made


async def test_one_installation_out_of_requests_does_not_hold_back_another(
    database_url: str, tmp_path: Path
) -> None:
    many = """
    INSERT INTO jobs (job_id, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, run_id,
        status, heard_at, poll_at, created_at, seen_at, updated_at)
    SELECT n, %(entity)s, 'acme', 'Organization', 'acme/widgets', '111', %(installation)s, '{rv9}', n, 'pending',
        %(at)s, %(at)s, %(at)s, %(at)s, %(at)s FROM generate_series(1, 600) n
    """
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        scope = system.github.scope("acme")
        system.queue("acme/widgets", "rv1")
        (hers,) = system.queue("jane/one", "rv1")
        await system.turn()
        system.github.sim.limits.exhaust(scope.installation_id)
        await system.step(61)
        async with system.database.transaction() as connection:
            values = {"entity": scope.entity.id, "installation": scope.installation_id}
            await connection.execute(many, values | {"at": system.clock.now()})
        system.github.sim.cancel_job(hers)
        system.github.sim.webhook_url = None
        for _ in range(4):
            await system.step(100)
        (job,) = await system.rows("SELECT status FROM jobs WHERE job_id = %(hers)s", hers=hers)
        assert job["status"] == "completed"


async def test_jit_calls_are_paced_to_150_a_minute(database_url: str, tmp_path: Path) -> None:
    entities = {"default": {"maxWorkers": None}}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 165}, entities=entities
    ) as system:
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))  # the image works
        await system.step(60)
        system.queue("acme/widgets", "rv1", jobs=165, seconds=600)
        await system.turn()
        await system.turn()
        assert jit_calls(system) == 1 + 150
        # nobody failed for want of a call
        assert await system.statuses("workers") == {"completed": 1, "pending": 150}
        rows = await system.rows("SELECT job_id FROM jobs WHERE skip_reason = 'github_budget_low'")
        assert len(rows) == 15
        row = await waiting_job(system, rows[0]["job_id"], "github_budget_low")
        assert row["skip_detail"]["why"] == "pace"
        assert datetime.fromisoformat(row["skip_detail"]["until"]) > system.clock.now()
        await system.step(6)
        assert jit_calls(system) == 1 + 165
