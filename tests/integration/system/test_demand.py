"""Demand, supply, caps and slots, through the whole system."""

from collections import Counter
from pathlib import Path

from controller.simulators.github import WebhookRule
from tests.systems import System, a_pool, a_system


def live_pods(system: System) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in system.cluster.pods()
        if pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]


async def test_a_cap_of_two_lets_thirty_jobs_finish_two_at_a_time(database_url: str, tmp_path: Path) -> None:
    entities = {"default": {"maxWorkers": 2}}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 8}, entities=entities
    ) as system:
        ids = system.queue("acme/widgets", "rv1", jobs=30, seconds=20)
        done = system.finished(ids)
        while not done():
            await system.step()
            held = await system.rows(
                "SELECT count(*) AS rows FROM workers WHERE status IN ('pending', 'running')"
            )
            assert held[0]["rows"] <= 2
            assert len(live_pods(system)) <= 2
            reasons = await system.rows("SELECT DISTINCT skip_reason FROM jobs WHERE status = 'pending'")
            assert {row["skip_reason"] for row in reasons} <= {
                None,
                "runner_on_its_way",
                "entity_at_max_workers",
            }
        await system.step()
        assert await system.statuses() == {"completed": 30}


async def test_a_matrix_of_256_with_reruns_doubles_and_reordering_ends_with_right_counts(
    database_url: str, tmp_path: Path
) -> None:
    entities = {"default": {"maxWorkers": None}}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 64}, entities=entities
    ) as system:
        faults = system.github.sim.faults.webhooks
        faults.duplicate, faults.reorder = 0.2, 0.3
        ids = system.queue("acme/widgets", "rv1", jobs=256, seconds=15)
        await system.step()
        for job_id in ids[:20]:
            system.github.sim.cancel_job(job_id)
        await system.until(system.finished(ids))
        run_id = system.github.sim.ledger.job(ids[0]).run_id
        again = [job.id for job in system.github.sim.rerun_failed(run_id)]
        assert again
        await system.until(system.finished(again))
        for _ in range(30):
            await system.step(10)
        assert await system.statuses() == {"completed": 256 + len(again)}
        truth = Counter(job.conclusion for job in system.github.sim.ledger.jobs())
        rows = await system.rows("SELECT conclusion, count(*) AS rows FROM jobs GROUP BY conclusion")
        assert {row["conclusion"]: row["rows"] for row in rows} == truth
        assert live_pods(system) == []
        assert set(await system.statuses("workers")) <= {"completed", "failed"}


async def test_label_sets_that_steal_each_others_runners_both_finish(
    database_url: str, tmp_path: Path
) -> None:
    pools = [a_pool("small", ["a"], board="rv1"), a_pool("large", ["a", "b"], board="rv1")]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 3}) as system:
        # GitHub tells of the older jobs late, so the first runners are made for the younger and taken by the older.
        system.github.sim.faults.webhooks.rules.append(WebhookRule("delay", action="queued", times=8))
        unheard = "apps/list-webhook-deliveries|actions/list-workflow-runs-for-repo"
        system.github.sim.faults.add(operation=unheard, status=500, times=4)
        ids = [*system.queue("acme/widgets", "a", jobs=8), *system.queue("acme/widgets", "a", "b", jobs=8)]
        await system.until(system.finished(ids))
        await system.step()
        assert await system.statuses() == {"completed": 16}
        stolen = await system.rows(
            "SELECT 1 FROM jobs j JOIN workers w ON w.name = j.runner_name WHERE w.labels <> j.labels"
        )
        assert len(stolen) >= 3  # every board's first runner; else this test shows nothing


async def test_two_pools_on_one_board_type_never_promise_one_board_twice(
    database_url: str, tmp_path: Path
) -> None:
    pools = [a_pool("one", ["x"], board="rv1"), a_pool("two", ["y"], board="rv1")]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 3}) as system:
        ids = [*system.queue("acme/widgets", "x", jobs=6), *system.queue("acme/widgets", "y", jobs=6)]
        done = system.finished(ids)
        while not done():
            await system.step()
            assert len(live_pods(system)) <= 3
        await system.step()
        assert await system.statuses() == {"completed": 12}


async def test_two_repositories_of_a_person_are_not_each_others_supply(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 4}) as system:
        ids = [*system.queue("jane/one", "rv1"), *system.queue("jane/two", "rv1")]
        await system.turn()
        made = sorted(runner.repository or "" for runner in system.github.sim.ledger.runners())
        assert made == ["jane/one", "jane/two"]
        await system.until(system.finished(ids))


async def test_a_job_without_a_board_says_so_and_runs_when_one_comes(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.turn()
        (job,) = await system.rows("SELECT skip_reason, skip_detail FROM jobs")
        assert job["skip_reason"] == "no_free_slots"
        assert job["skip_detail"]["boards"] == 0
        system.cluster.add_board("late", {"riseproject.dev/board": "rv1"})
        await system.turn()
        assert len(live_pods(system)) == 1
        await system.until(system.finished(ids))
