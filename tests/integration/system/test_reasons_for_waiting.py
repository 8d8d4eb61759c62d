"""Every reason for which a pending job gets no worker, brought about and read back; and that it goes on after."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.domain.reasons import Skip
from controller.simulators.github import JobSpec, WebhookRule
from tests.integration.system.reading import asked, jit_calls, step_until, waiting_job
from tests.systems import System, a_pool, a_system

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}


async def change(system: System, statement: str, **values: Any) -> None:
    """What an administrator or other settings would have changed."""
    async with system.database.transaction() as connection:
        await connection.execute(statement, values)


async def test_cancelled(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        await change(system, "UPDATE jobs SET mark = 'cancelled'")
        system.cluster.add_board("rv1-1", {"riseproject.dev/board": "rv1"})
        await system.turn()
        await waiting_job(system, job_id, "cancelled")
        assert jit_calls(system) == 0
        await change(system, "UPDATE jobs SET mark = NULL")
        await system.until(system.finished([job_id]))


async def test_gave_up_after_three_refusals_of_its_own(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        rule = system.cluster.faults.add(operation="create pods", status=422, times=None)
        (job_id,) = system.queue("acme/widgets", "rv1")
        for _ in range(5):
            await system.step(30)
        row = await waiting_job(system, job_id, "gave_up")
        assert (row["attempts"], row["own_faults"], row["last_failure"]) == (3, 3, "provision_failed")
        system.cluster.faults.remove(rule.name)
        await system.step(600)
        assert jit_calls(system) == 3
        await change(system, "UPDATE jobs SET mark = NULL, attempts = 0, own_faults = 0, retry_after = NULL")
        await system.until(system.finished([job_id]))


async def test_not_confirmed_until_the_deployment_is_approved(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        run = system.github.sim.queue_run("acme/widgets", [JobSpec(["rv1"], 30, waiting=True)])
        job_id = run.jobs[0].id
        await system.turn()
        await waiting_job(system, job_id, "not_confirmed")
        await system.step(60)
        assert jit_calls(system) == 0
        system.github.sim.approve(job_id)
        await system.until(system.finished([job_id]))
        assert jit_calls(system) == 1


async def test_not_allowed_for_a_pull_request_from_a_fork_at_one_request_per_run(
    database_url: str, tmp_path: Path
) -> None:
    access = {"forkPullRequests": "deny"}
    async with a_system(database_url, tmp_path, **ONE_BOARD, access=access) as system:
        own = system.queue("acme/widgets", "rv1", jobs=2)
        forked = system.github.sim.queue_fork_run("acme/widgets", [JobSpec(["rv1"]) for _ in range(3)])
        await system.turn()
        for job in forked.jobs:
            row = await waiting_job(system, job.id, "not_allowed")
            assert "fork" in row["skip_detail"]["why"]
        await system.until(system.finished(own))
        assert len(asked(system, "get-workflow-run")) == 2  # one per run
        assert jit_calls(system) == 2
        assert {system.github.sim.ledger.job(job.id).status for job in forked.jobs} == {"queued"}


async def test_a_run_of_which_github_has_not_said_whose_code_it_is_waits(
    database_url: str, tmp_path: Path
) -> None:
    access = {"forkPullRequests": "deny"}
    async with a_system(database_url, tmp_path, **ONE_BOARD, access=access) as system:
        rule = system.github.sim.faults.add(operation="actions/get-workflow-run", status=500, times=None)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        await waiting_job(system, job_id, "not_confirmed")
        assert jit_calls(system) == 0
        before = rule.hits
        for _ in range(10):  # each push wakes the loop; what GitHub did not answer is not asked each time
            system.queue("acme/widgets", "elsewhere")
            await system.step(1)
            await system.turn()
        assert rule.hits <= before + 1
        system.github.sim.faults.remove(rule.name)
        await system.until(system.finished([job_id]))


async def test_wrong_app_and_no_pool_after_a_change_of_settings(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        one, two = system.queue("acme/widgets", "rv1", jobs=2)
        await system.turn()
        await change(system, "UPDATE jobs SET app_id = '222' WHERE job_id = %(one)s", one=one)
        await change(system, "UPDATE jobs SET labels = '{other,rv1}' WHERE job_id = %(two)s", two=two)
        await system.turn()
        row = await waiting_job(system, one, "wrong_app")
        assert row["skip_detail"] == {"app": "222", "entity_type": "Organization"}
        row = await waiting_job(system, two, "no_pool")
        assert row["skip_detail"] == {"nearest": ["rv1"]}


@pytest.mark.parametrize("told", [True, False], ids=["told by a webhook", "found out"])
async def test_installation_suspended(database_url: str, tmp_path: Path, told: bool) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.settle()
        faults = system.github.sim.faults.webhooks
        faults.lose = 0.0 if told else 1.0
        system.github.sim.suspend("acme")
        for _ in range(4):
            await system.step(20)
        await waiting_job(system, job_id, "installation_suspended")
        before = jit_calls(system)
        await system.step(120)
        assert jit_calls(system) == before
        if not told:
            (event,) = await system.rows(
                "SELECT outcome, detail FROM events WHERE kind = 'installation.auth_suspended'"
            )
            assert event["outcome"] == "auth_attempt.suspended"
            assert "suspended" in event["detail"]["error"]
        system.github.sim.unsuspend("acme")
        faults.lose = 0.0
        await system.until(system.finished([job_id]), seconds=30)


async def test_a_suspension_that_is_told_after_its_end_is_seen_through(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={}) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        await system.step(70)  # GitHub is asked about the job, so there is a token
        late = WebhookRule("delay", event="installation", action="suspend", delay=timedelta(seconds=30))
        system.github.sim.faults.webhooks.rules.append(late)
        system.github.sim.suspend("acme")
        system.github.sim.unsuspend("acme")
        await system.step(60)
        system.cluster.add_board("rv1-1", {"riseproject.dev/board": "rv1"})
        for _ in range(12):
            await system.step(30)
        assert system.finished([job_id])()


async def test_held_while_a_hold_is_in_force_and_not_after_its_time(
    database_url: str, tmp_path: Path
) -> None:
    hold = """INSERT INTO holds (scope, target, why, until, who, created_at)
    VALUES (%(scope)s, %(target)s, 'pause', %(until)s, 'ada', %(now)s)"""
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        now = system.clock.now()
        later, past = now + timedelta(minutes=10), now - timedelta(seconds=1)
        await change(system, hold, scope="entity", target="acme", until=later, now=now)
        await change(system, hold, scope="pool", target="rv1", until=past, now=now)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        row = await waiting_job(system, job_id, "held")
        assert (row["skip_detail"]["scope"], row["skip_detail"]["until"]) == ("entity", later.isoformat())
        assert system.metrics.registry.get_sample_value("switchboard_holds", {"kind": "pause"}) == 1
        await system.step(601)
        assert jit_calls(system) == 1
        await system.until(system.finished([job_id]))


async def test_backing_off_waits_1_2_4_minutes_from_the_second_failure_on(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        rule = system.cluster.faults.add(operation="create pods", status=503, times=None)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()  # the first failure is tried again at once
        row = await waiting_job(system, job_id, "backing_off")
        assert row["skip_detail"]["last_failure"] == "provision_failed"
        waits = []
        for _ in range(4):
            (job,) = await system.rows("SELECT attempts, retry_after FROM jobs")
            waits.append((job["attempts"], (job["retry_after"] - system.clock.now()).total_seconds()))
            await system.clock.advance(job["retry_after"] - system.clock.now())
            await system.turn()
        assert waits == [(2, 60), (3, 120), (4, 240), (5, 480)]
        (job,) = await system.rows("SELECT mark, own_faults FROM jobs")
        assert (job["mark"], job["own_faults"]) == (None, 0)  # an outage has no limit
        system.cluster.faults.remove(rule.name)
        await system.until(system.finished([job_id]), seconds=60)


async def test_not_picked_up_and_its_key_backs_off(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        for group in system.github.sim.world.accounts["acme"].groups.values():
            group.allows_public_repositories = False  # the runner is not for this repository
        for _ in range(10):
            await system.step(30)
        row = await waiting_job(system, job_id, "not_picked_up")
        (worker,) = await system.rows("SELECT name FROM workers")
        assert row["skip_detail"]["workers"] == [worker["name"]]

        async def backs_off() -> bool:
            return bool(await system.rows("SELECT 1 FROM jobs WHERE skip_reason = 'backing_off'"))

        await step_until(system, backs_off, 30)
        assert jit_calls(system) == 1
        for _ in range(20):
            await system.step(60)
        assert jit_calls(system) <= 3
        for group in system.github.sim.world.accounts["acme"].groups.values():
            group.allows_public_repositories = True
        await system.until(system.finished([job_id]), seconds=60)


async def test_runner_on_its_way_then_entity_at_max_workers(database_url: str, tmp_path: Path) -> None:
    entities = {"overrides": {"ACME": {"maxWorkers": 1}}}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, entities=entities
    ) as system:
        first, second = system.queue("acme/widgets", "rv1", jobs=2)
        await system.turn()
        await system.turn()
        row = await waiting_job(system, first, "runner_on_its_way")
        (worker,) = await system.rows("SELECT name FROM workers")
        assert row["skip_detail"] == {"workers": 1, "stages": {"pod": 1}, "names": [worker["name"]]}
        row = await waiting_job(system, second, "entity_at_max_workers")
        assert row["skip_detail"] == {"max_workers": 1}
        await system.until(system.finished([first, second]))


async def test_no_free_slots_says_what_the_boards_do(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}) as system:
        system.cluster.cordon("rv1-1")
        system.cluster.kill_kubelet("rv1-2")
        await system.step(60)
        first, second = system.queue("acme/widgets", "rv1", jobs=2, seconds=300)
        await system.turn()
        await system.step(10)
        row = await waiting_job(system, second, "no_free_slots")
        assert row["skip_detail"]["boards"] == 3
        assert row["skip_detail"]["states"] == {"busy": 1, "cordoned": 1, "unreachable": 1}
        system.cluster.uncordon("rv1-1")
        await system.until(system.finished([first, second]), seconds=30)


async def test_github_budget_low_until_the_hour_is_over(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        installation = system.github.scope("acme").installation_id
        limits = system.github.sim.limits
        limits.exhaust(installation)
        limits.bucket(("installation", installation)).resets_at = system.clock.now() + timedelta(minutes=10)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        row = await waiting_job(system, job_id, "github_budget_low")
        over = limits.bucket(("installation", installation)).resets_at
        assert row["skip_detail"]["why"] == "hourly"
        said = datetime.fromisoformat(row["skip_detail"]["until"])
        assert said - timedelta(seconds=1) < over < said + timedelta(seconds=1)
        before = len(system.github.sim.requests)
        for _ in range(8):
            await system.step(60)
        sent = list(system.github.sim.requests)[before:]
        assert [each for each in sent if each.installation_id == installation] == []  # obeyed
        await system.until(system.finished([job_id]), seconds=60)


async def test_cluster_unknown_starts_nothing(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.faults.add(name="away", operation="(list|watch) .*", status=503, times=None)
        system.cluster.drop_watches()
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.step(60)
        row = await waiting_job(system, job_id, "cluster_unknown")
        assert row["skip_detail"]["why"]
        assert jit_calls(system) == 0
        system.cluster.faults.clear()
        await system.until(system.finished([job_id]), seconds=30)


def test_no_reason_is_left_out() -> None:
    brought_about = Path(__file__).read_text(encoding="utf-8")
    assert [skip for skip in Skip if f', "{skip.value}")' not in brought_about] == []
