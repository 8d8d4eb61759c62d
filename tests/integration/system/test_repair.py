"""What webhooks did not tell is found out: due jobs, lost jobs, installations that come and go."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from controller.domain.constants import QUEUED_SWEEP_EVERY, QUEUED_SWEEP_RUNS
from controller.simulators.github import JobSpec, WebhookRule
from tests.integration.system.reading import all_completed, asked, lose_leadership, lost_jobs, step_until
from tests.systems import System, a_pool, a_system

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}
NO_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 0}}
RUN_JOBS, ONE_JOB = "list-jobs-for-workflow-run", "get-job-for-workflow-run"


async def failed_job(system: System, reason: str) -> dict[str, Any]:
    """The one job that failed for this reason, by row and event."""
    (row,) = await system.rows("SELECT * FROM jobs WHERE status = 'failed'")
    assert row["failure_info"]["reason"] == reason
    (event,) = await system.rows("SELECT job_id, detail FROM events WHERE kind = 'job.failed'")
    assert (event["job_id"], event["detail"]["reason"]) == (row["job_id"], reason)
    return row


async def test_due_jobs_of_one_run_are_asked_with_one_request(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **NO_BOARD) as system:
        system.queue("acme/widgets", "rv1", jobs=7)
        await system.turn()
        await system.step(59)
        assert asked(system, RUN_JOBS) == []
        looks = []
        for minutes in (1, 5, 10):
            await system.step(minutes * 60 + 1)
            looks.append(len(asked(system, RUN_JOBS)))
        assert looks == [1, 2, 3]
        assert asked(system, ONE_JOB) == []


async def test_a_404_must_be_confirmed_before_a_job_has_failed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **NO_BOARD) as system:
        hidden, passing = system.queue("acme/widgets", "rv1", jobs=2)
        await system.turn()
        system.github.sim.hide_job(hidden, timedelta(hours=1), in_list=True)
        system.github.sim.hide_job(passing, timedelta(seconds=90), in_list=True)
        await system.step(61)
        assert len(asked(system, ONE_JOB)) == 2
        assert await system.statuses() == {"pending": 2}
        await system.step(61)
        row = await failed_job(system, "not_found")
        assert row["job_id"] == hidden
        assert await system.statuses() == {"pending": 1, "failed": 1}


async def test_a_job_left_queued_by_a_run_that_has_ended_is_stuck(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **NO_BOARD) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.end_run(system.github.sim.ledger.job(job_id).run_id)
        for _ in range(9):
            await system.step(60)
        assert await system.statuses() == {"pending": 1}
        for _ in range(12):
            await system.step(60)
        await failed_job(system, "stuck_queued")


async def test_an_installation_that_is_gone_fails_what_waits_and_not_what_runs(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        (running,) = system.queue("acme/widgets", "rv1", seconds=700)
        await system.turn()
        await system.step(10)
        (waiting,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.uninstall("acme")
        await system.turn()
        row = await failed_job(system, "installation_gone")
        assert row["job_id"] == waiting
        await system.step(320)
        assert await system.statuses() == {"running": 1, "failed": 1}
        for _ in range(4):
            await system.step(200)
        assert await system.statuses() == {"failed": 2}  # its pod has ended, and nobody will tell us how
        kinds = {row["kind"] for row in await system.rows("SELECT kind FROM events")}
        assert {"installation.deleted", "installation.auth_not_found"} <= kinds
        assert system.github.sim.ledger.job(running).conclusion == "success"


async def test_an_app_that_was_installed_anew_is_found_again(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **NO_BOARD) as system:
        ids = system.queue("acme/widgets", "rv1", jobs=2)
        await system.turn()
        system.github.sim.uninstall("acme")
        new = system.github.sim.reinstall("acme")
        await system.turn()
        assert await system.statuses() == {"pending": 2}
        rows = await system.rows("SELECT DISTINCT installation_id FROM jobs")
        assert rows == [{"installation_id": new.id}]
        system.cluster.add_board("rv1-1", {"riseproject.dev/board": "rv1"})
        await system.until(system.finished(ids))


async def test_a_failed_authentication_leaves_an_event_and_so_does_the_next_success(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.github.sim.faults.add(operation="apps/create-installation-access-token", status=500, times=2)
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids), 20)
        events = await system.rows(
            "SELECT kind, outcome, installation_id FROM events WHERE kind LIKE 'installation.auth%%' ORDER BY id"
        )
        installation = system.github.scope("acme").installation_id
        assert [(e["outcome"], e["installation_id"]) for e in events] == [
            ("auth_attempt.failed", installation),
            ("auth_attempt.ok", installation),
        ]


async def test_a_home_lab_without_a_receiver_finishes_every_job(database_url: str, tmp_path: Path) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}, webhook="pull"
    ) as system:
        system.github.sim.webhook_url = None
        ids = [*system.queue("acme/widgets", "rv1", jobs=5), *system.queue("jane/one", "rv1", jobs=2)]
        await system.until(system.finished(ids), 15)
        await step_until(system, all_completed(system, 7), 15)
        assert {row["learnt_from"] for row in await system.rows("SELECT learnt_from FROM jobs")} == {"pull"}
        assert await system.statuses("workers") == {"completed": 7}


async def test_with_30_percent_of_webhooks_lost_every_job_finishes(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 4}) as system:
        first = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(first))
        system.github.sim.faults.webhooks.lose = 0.3
        ids = list(first)
        for jobs in (1, 1, 2, 3, 5, 6):
            ids += system.queue("acme/widgets", "rv1", jobs=jobs)
        await system.until(system.finished(ids), 20)

        async def nothing_is_left() -> bool:
            return set(await system.statuses()) == {"completed"}

        await step_until(system, nothing_is_left, 60)
        learnt = {row["learnt_from"] for row in await system.rows("SELECT learnt_from FROM jobs")}
        assert "sweep" in learnt  # else nothing was lost
        assert lost_jobs(system) == []


async def test_a_run_that_was_never_told_of_is_swept_for_every_ten_minutes(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        first = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(first))
        system.github.sim.faults.webhooks.rules.append(WebhookRule("lose", action="queued"))
        (unheard,) = system.queue("acme/widgets", "rv1")
        await system.step(300)
        assert await system.statuses() == {"completed": 1}
        await system.until(system.finished([unheard]), 60)
        (job,) = await system.rows("SELECT * FROM jobs WHERE job_id = %(id)s", id=unheard)
        assert (job["learnt_from"], job["pool"], job["run_attempt"]) == ("sweep", "rv1", 1)
        assert await system.rows(
            "SELECT 1 FROM events WHERE kind = 'job.learnt' AND job_id = %(id)s", id=unheard
        )
        await system.step(20)
        asked_before = len(asked(system, "list-workflow-runs"))
        for _ in range(10):
            await system.step(120)
        sweeps = [e for e in system.github.sim.requests if "list-workflow-runs" in e.operation][asked_before:]
        assert len(sweeps) == 4  # twice in each of two sweeps: queued runs and runs in progress
        assert all(each.not_modified for each in sweeps[2:])  # free, while nothing changes


async def test_runs_without_a_job_for_us_hide_none_that_has_one(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        first = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(first))
        system.github.sim.faults.webhooks.rules.append(WebhookRule("lose", action="queued"))
        unheard = system.queue("acme/widgets", "rv1")
        for _ in range(QUEUED_SWEEP_RUNS + 5):
            system.queue("acme/widgets", "ubuntu-latest")
        for _ in range(3):
            await system.step(QUEUED_SWEEP_EVERY.total_seconds())
        await system.until(system.finished(unheard))


async def test_jobs_of_a_known_run_that_were_never_told_of_are_learnt(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **NO_BOARD) as system:
        rules = system.github.sim.faults.webhooks.rules
        rules.append(WebhookRule("lose", action="queued", times=2))
        run = system.github.sim.queue_run(
            "acme/widgets", [JobSpec(["rv1"]), JobSpec(["rv1"]), JobSpec(["rv1"]), JobSpec(["ubuntu-latest"])]
        )
        await system.turn()
        assert await system.statuses() == {"pending": 1}
        await system.step(61)
        rows = await system.rows("SELECT job_id FROM jobs ORDER BY job_id")
        assert [row["job_id"] for row in rows] == [
            job.id for job in run.jobs[:3]
        ]  # what no pool serves is left out
        assert len(asked(system, RUN_JOBS)) == 1


async def test_a_delivery_that_cannot_be_fetched_does_not_stand_in_the_way(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.turn()
        url, system.github.sim.webhook_url = system.github.sim.webhook_url, None
        system.github.sim.faults.add(operation="apps/get-webhook-delivery", status=404, times=1)
        system.queue("acme/widgets", "rv1")
        ids = system.queue("acme/widgets", "rv1")
        await system.settle()
        system.github.sim.webhook_url = url
        await system.until(system.finished(ids), 20)


async def test_what_failed_to_arrive_before_the_last_delivery_is_pulled_by_a_new_leader(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **NO_BOARD) as system:
        await system.turn()
        rule = system.github.sim.faults.add(operation="apps/list-webhook-deliveries", status=500, times=None)
        system.github.sim.faults.webhooks.rules.append(WebhookRule("fail", action="queued"))
        (failed,) = system.queue("acme/widgets", "rv1")
        await system.step(600)
        system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.faults.remove(rule.name)
        await lose_leadership(system)
        rows = await system.rows("SELECT learnt_from FROM jobs WHERE job_id = %(failed)s", failed=failed)
        assert rows == [{"learnt_from": "pull"}]
