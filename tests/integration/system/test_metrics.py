"""What Prometheus is told while jobs run, wait and fail: every metric of the documentation moves."""

from pathlib import Path

from controller.domain.holds import HoldWhy
from controller.simulators.github import WebhookRule
from tests.systems import BOARD_LABEL, System, a_pool, a_system


def value(system: System, name: str, **labels: str) -> float | None:
    return system.metrics.registry.get_sample_value(f"switchboard_{name}", labels)


async def test_a_job_that_runs_is_measured_at_every_stage(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        await system.turn()
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step()
        for stage in ("seen", "reserved", "jit", "pod", "running", "started"):
            assert value(system, "provision_seconds_count", stage=stage) == 1, stage
        assert value(system, "job_wait_seconds_count", pool="rv1") == 1
        assert value(system, "jobs_finished_total", pool="rv1", conclusion="success") == 1


async def test_an_idle_runner_that_comes_online_is_measured(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        await system.turn()
        (job,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job)
        await system.until(lambda: value(system, "provision_seconds_count", stage="online") == 1)


async def test_a_job_whose_webhooks_were_lost_is_counted_once(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        for action in ("in_progress", "completed"):
            system.github.sim.faults.webhooks.rules.append(WebhookRule("lose", action=action))
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.until(
            lambda: value(system, "jobs_finished_total", pool="rv1", conclusion="success") == 1
        )
        for _ in range(20):
            await system.step(60)
        assert value(system, "jobs_finished_total", pool="rv1", conclusion="success") == 1
        assert value(system, "job_wait_seconds_count", pool="rv1") == 1


async def test_boards_are_shown_by_what_they_are_doing(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}) as system:
        system.cluster.cordon("rv1-3")
        system.queue("acme/widgets", "rv1")
        await system.turn()
        await system.step()
        shown = {state: value(system, "board_slots", pool="rv1", state=state) for state in ("free", "busy")}
        assert shown == {"free": 1, "busy": 1}
        assert value(system, "board_slots", pool="rv1", state="cordoned") == 1


async def test_metric_snapshot_and_usage_count_the_slots_of_a_board_that_has_several(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        system.cluster.add_board("big", {BOARD_LABEL: "rv1"}, slots=4)
        system.queue("acme/widgets", "rv1", jobs=3, seconds=600)
        await system.turn()
        await system.step(60)
        states = ("free", "promised", "busy")
        shown = {state: value(system, "board_slots", pool="rv1", state=state) for state in states}
        assert shown == {"free": 1, "promised": 0, "busy": 3}
        (last,) = await system.rows("SELECT slots, free, busy FROM board_snapshots ORDER BY at DESC LIMIT 1")
        assert last == {"slots": 4, "free": 1, "busy": 3}
        (board,) = await system.rows("SELECT state, slots, free FROM boards")
        assert board == {"state": "busy", "slots": 4, "free": 1}


async def test_a_board_that_is_promised_is_no_free_one_anywhere(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        first, second = system.queue("acme/widgets", "rv1", jobs=2)
        await system.settle()
        await system.controller.loop.turn()  # the worker is not even reserved yet
        (job,) = await system.rows("SELECT skip_detail FROM jobs WHERE job_id = %(second)s", second=second)
        assert job["skip_detail"]["states"] == {"promised": 1}
        assert await system.rows("SELECT state, free FROM boards") == [{"state": "promised", "free": 0}]
        assert value(system, "board_slots", pool="rv1", state="promised") == 1
        await system.turn()
        await system.step()
        assert await system.rows("SELECT state, free FROM boards") == [{"state": "busy", "free": 0}]
        await system.until(system.finished([first, second]))


async def test_boards_that_cannot_be_seen_have_no_number(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        await system.turn()
        system.cluster.faults.add(operation="watch nodes", status=503, times=1000)
        system.cluster.faults.add(operation="list nodes", status=503, times=1000)
        system.cluster.drop_watches()
        await system.until(lambda: value(system, "board_slots", pool="rv1", state="free") is None)


async def test_a_hold_that_ends_is_shown_no_more(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        async with system.database.transaction() as connection:
            await connection.execute(
                "INSERT INTO holds (scope, target, why, who, created_at) "
                "VALUES ('pool', 'rv1', 'pause', 'someone', now())"
            )
        await system.turn()
        assert value(system, "holds", kind="pause") == 1
        async with system.database.transaction() as connection:
            await connection.execute("DELETE FROM holds")
        await system.turn()
        assert {why.value: value(system, "holds", kind=why.value) for why in HoldWhy} == {
            why.value: 0 for why in HoldWhy
        }


async def test_the_budget_of_an_installation_is_shown_while_it_is_used(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        (job,) = await system.rows("SELECT installation_id FROM jobs")
        installation = str(job["installation_id"])
        assert (value(system, "github_rate_limit_remaining", installation=installation) or 0) > 0
        await system.until(
            lambda: value(system, "github_rate_limit_remaining", installation=installation) is None, 600
        )
