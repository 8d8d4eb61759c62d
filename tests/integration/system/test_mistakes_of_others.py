"""Mistakes that other runner fleets made, each with the test that would catch it here."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from controller.simulators.cluster import Behaviour
from controller.simulators.github import WebhookRule
from tests.integration.system.reading import any_failed, asked, jit_calls, lost_jobs, step_until
from tests.systems import BOARD_LABEL, System, a_pool, a_system

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}
LISTS = "actions/list-self-hosted-runners.*"
PULLED = "switchboard_deliveries_pulled_total"
KILLS = "switchboard_kills_refused_total"


async def an_idle_runner(system: System) -> str:
    """A healthy worker that waits for work: its job was cancelled while the pod started."""
    (job_id,) = system.queue("acme/widgets", "rv1")
    await system.turn()
    system.github.sim.cancel_job(job_id)
    await system.step(10)
    (worker,) = await system.rows("SELECT name FROM workers")
    return str(worker["name"])


def our_group(system: System) -> Any:
    groups = system.github.sim.world.accounts["acme"].groups.values()
    return next(group for group in groups if group.name == system.file.runner_group)


def register(system: System, name: str) -> None:
    """A runner of the organization that this controller knows nothing of."""
    account = system.github.sim.world.accounts["acme"]
    system.github.sim.runners.register(account, None, our_group(system), name, ["rv1"])


def counted(system: System, name: str) -> float:
    """What a counter without labels says."""
    return system.metrics.registry.get_sample_value(name) or 0


def registered(system: System) -> set[str]:
    return {each.name for each in system.github.sim.ledger.runners() if each.removed_at is None}


async def test_a_failed_runner_list_taken_as_empty(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        name = await an_idle_runner(system)
        system.github.sim.faults.add(operation=LISTS, status=500, times=None)
        for _ in range(10):
            await system.step(30)
        assert asked(system, "list-self-hosted-runners-in-group")
        assert await system.statuses("workers") == {"running": 1}
        assert name in registered(system)
        assert await system.rows("SELECT 1 FROM events WHERE kind = 'worker.ending'") == []


async def test_a_busy_runner_killed_on_a_stale_busy_false(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await an_idle_runner(system)
        for _ in range(19):
            await system.step(30)
        system.github.sim.behaviour.busy_lag = timedelta(minutes=5)
        system.github.sim.faults.webhooks.lose = 1.0  # we never hear that the idle runner got a job …
        system.github.sim.faults.add(operation="actions/list-workflow-runs.*", status=500, times=None)
        ids = system.queue("acme/widgets", "rv1", seconds=280)
        await system.until(system.finished(ids), 30)
        assert counted(system, KILLS) >= 1  # GitHub's 422 was the last guard
        assert lost_jobs(system) == []


async def test_one_reading_of_a_runner_list_kills_nobody(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(hang=True))
        rule = system.github.sim.faults.add(operation=LISTS, status=500, times=None)
        system.queue("acme/widgets", "rv1")
        for _ in range(10):
            await system.step(30)
        system.github.sim.faults.remove(rule.name)
        await system.step(60)
        await system.turn()
        assert asked(system, "list-self-hosted-runners-in-group")
        assert await system.statuses("workers") == {"running": 1}
        await system.step(60)
        await system.turn()
        (worker, *_) = await system.rows("SELECT failure_reason FROM workers WHERE status = 'failed'")
        assert worker["failure_reason"] == "runner_never_registered"


async def test_runner_lists_read_only_to_page_1(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        first = system.queue("acme/widgets", "rv1", seconds=5)
        await system.until(system.finished(first))
        for number in range(130):
            register(system, f"another-fleet-{number:03}")
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        for _ in range(10):
            await system.step(30)
        assert await system.statuses("workers") == {"completed": 1, "running": 1}


async def test_a_finished_worker_with_a_hung_pod_counted_as_supply(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        for board in ("rv1-1", "rv1-2"):
            system.cluster.set_board_behaviour(board, Behaviour(never_exits=True))
        first = system.queue("acme/widgets", "rv1", seconds=5)
        await system.until(system.finished(first))
        second = system.queue("acme/widgets", "rv1", seconds=5)
        await system.turn()
        assert jit_calls(system) == 2
        await system.until(system.finished(second))


async def test_one_transaction_around_network_calls(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 4}) as system:
        rule = system.github.sim.faults.add(operation=".*jitconfig.*", hold="before")
        first = system.queue("acme/widgets", "rv1")
        await system.settle()
        await system.controller.loop.turn()
        await rule.wait_held()
        second = system.queue("acme/widgets", "rv1")
        await system.settle()
        assert all(
            each.ok for each in system.github.sim.world.deliveries.values() if each.event != "installation"
        )
        await system.controller.loop.turn()  # and the loop goes round, lock on the workers and all
        assert await system.statuses() == {"pending": 2}
        assert await system.statuses("workers") == {"pending": 2}
        assert system.controller.loop.snapshot().last_error is None
        system.github.sim.faults.release(rule.name)
        await system.until(system.finished([*first, *second]))


async def test_one_sql_error_drops_all_writes(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        async with system.database.transaction() as connection:
            await connection.execute("ALTER TABLE workers ADD CHECK (node <> 'rv1-1')")
        system.queue("acme/widgets", "rv1", jobs=2, seconds=600)
        for _ in range(3):
            await system.step(5)
        rows = await system.rows("SELECT node, status FROM workers ORDER BY node NULLS FIRST")
        assert rows == [{"node": None, "status": "pending"}, {"node": "rv1-2", "status": "running"}]


async def test_pods_created_before_the_row_commits(database_url: str, tmp_path: Path) -> None:
    refuse = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no more workers'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON workers EXECUTE FUNCTION refuse();
    """
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        async with system.database.transaction() as connection:
            await connection.execute(refuse)
        ids = system.queue("acme/widgets", "rv1")
        await system.turn()
        assert (jit_calls(system), system.cluster.pods()) == (0, [])
        async with system.database.transaction() as connection:
            await connection.execute("DROP TRIGGER refuse ON workers")
        rule = system.github.sim.faults.add(operation=".*jitconfig.*", hold="before")
        await system.controller.loop.turn()
        await rule.wait_held()
        assert await system.statuses("workers") == {"pending": 1}  # there for everybody to see
        system.github.sim.faults.release(rule.name)
        await system.until(system.finished(ids))


async def test_a_new_worker_orphaned_because_the_watch_had_not_seen_its_pod(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        rule = system.cluster.faults.add(operation="(list|watch) pods", hold="before", times=None)
        system.cluster.drop_watches()
        ids = system.queue("acme/widgets", "rv1")
        await system.turn()
        for _ in range(4):
            await system.step(5)
        assert len(system.cluster.pods()) == 1
        assert await system.statuses("workers") == {"pending": 1}
        system.cluster.faults.remove(rule.name)
        await system.until(system.finished(ids))
        await system.step()
        assert await system.statuses("workers") == {"completed": 1}


async def test_a_deadline_patch_on_a_pod_that_no_kubelet_has(database_url: str, tmp_path: Path) -> None:
    pools = [a_pool("rv1", resources={"requests": {"cpu": "900"}})]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 1}) as system:
        system.queue("acme/widgets", "rv1")
        await system.turn()
        (pod,) = system.cluster.pods()
        assert "startTime" not in pod["status"]
        await system.step(610)
        await step_until(system, any_failed(system))
        assert pod["metadata"]["name"] not in {each["metadata"]["name"] for each in system.cluster.pods()}


async def test_personal_accounts_counted_over_all_repositories(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 4}) as system:
        (gone,) = system.queue("jane/one", "rv1")
        await system.turn()
        system.github.sim.cancel_job(gone)  # leaves a free runner in jane/one
        ids = system.queue("jane/two", "rv1")
        await system.turn()
        made = sorted(runner.repository or "" for runner in system.github.sim.ledger.runners())
        assert made == ["jane/one", "jane/two"]
        await system.until(system.finished(ids))


async def test_capacity_counting_cordoned_or_dead_nodes(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 4}) as system:
        system.cluster.cordon("rv1-1")
        system.cluster.kill_kubelet("rv1-2")
        system.cluster.add_board("rv1-9", {BOARD_LABEL: "rv1"}, slots=0)
        await system.step(60)
        system.queue("acme/widgets", "rv1", jobs=6, seconds=600)
        await system.turn()
        await system.step(5)
        assert jit_calls(system) == 2
        nodes = sorted(pod["spec"].get("nodeName", "") for pod in system.cluster.pods())
        assert nodes == ["rv1-3", "rv1-4"]


async def test_a_prefix_that_is_also_another_environments_prefix(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        system.queue("acme/widgets", "rv1")
        await system.turn()
        ours = "rise-riscv-runner-abcdefghi"
        others = {
            "rise-riscv-runner-staging-abcdefghi",
            "rise-riscv-runner-abcdefghij",
            "rise-riscv-runner-ABCDEFGHI",
            "a-rise-riscv-runner-abcdefghi",
        }
        for name in {ours, *others}:
            register(system, name)
        for _ in range(30):
            await system.step(30)
        left = registered(system)
        assert ours not in left
        assert others <= left


async def test_webhooks_assumed_to_be_redelivered(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.turn()  # the look at start-up is over
        pulled = counted(system, PULLED)
        rules = system.github.sim.faults.webhooks.rules
        rules.extend(WebhookRule("fail", action=action) for action in ("queued", "in_progress", "completed"))
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.until(system.finished([job_id]))
        await system.step(60)
        (job,) = await system.rows("SELECT status, learnt_from FROM jobs")
        assert job == {"status": "completed", "learnt_from": "pull"}
        assert asked(system, "redeliver") == []
        assert counted(system, PULLED) >= pulled + 3


async def test_rerun_bursts_corrupting_counts_kept_as_deltas(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 6}) as system:
        faults = system.github.sim.faults.webhooks
        faults.duplicate, faults.reorder, faults.reorder_within = 0.5, 0.5, timedelta(seconds=40)
        ids = system.queue("acme/widgets", "rv1", jobs=12, seconds=10)
        await system.step()
        run_id = system.github.sim.ledger.job(ids[0]).run_id
        system.github.sim.cancel_run(run_id)
        await system.until(system.finished(ids), 10)
        late = timedelta(seconds=50)  # long after `completed`
        faults.rules.append(WebhookRule("delay", action="in_progress", times=6, delay=late))
        again = [job.id for job in system.github.sim.rerun_failed(run_id)]
        await system.until(system.finished(again), 10)
        for _ in range(6):
            await system.step(10)
        assert await system.statuses() == {"completed": 12 + len(again)}
        shown = system.metrics.registry.get_sample_value
        assert shown("switchboard_jobs", {"status": "pending"}) == 0
        assert shown("switchboard_jobs", {"status": "running"}) == 0


async def test_retry_of_a_jit_call_under_the_same_name(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.github.sim.faults.add(operation=".*jitconfig.*", drop="after")
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        answers = [each.status for each in system.github.sim.requests if "jitconfig" in each.operation]
        assert 409 not in answers
        first, second = system.github.sim.ledger.runners()
        assert first.name != second.name
        assert first.removed_why == "deleted"  # registered by the call whose answer was lost


async def test_per_job_metric_labels(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(crash=1))
        faults = system.github.sim.faults.webhooks
        faults.rules.append(WebhookRule("lose", action="completed", times=None))
        ids = system.queue("acme/widgets", "rv1", jobs=4, seconds=5)
        await system.until(system.finished(ids), 20)
        await system.step(60)
        text = system.metrics.render()[0].decode()
        names = [row["name"] for row in await system.rows("SELECT name FROM workers")]
        runs = [row["run_id"] for row in await system.rows("SELECT run_id FROM jobs")]
        told = [each for each in (*ids, *names, *runs, "acme") if str(each) in text]
        assert told == []


async def test_jobs_above_a_limit_dropped_instead_of_queued(database_url: str, tmp_path: Path) -> None:
    entities = {"default": {"maxWorkers": 1}}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}, entities=entities
    ) as system:
        ids = system.queue("acme/widgets", "rv1", jobs=4, seconds=5)
        await system.turn()
        assert await system.statuses() == {"pending": 4}
        await system.until(system.finished(ids))
        await system.step()
        assert await system.statuses() == {"completed": 4}
        assert await system.statuses("workers") == {"completed": 4}
