"""Every reason for which a worker ends other than well, brought about and read back: row, info, event, metric."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.simulators.cluster import Behaviour
from controller.simulators.cluster.objects import PODS
from tests.integration.system.reading import any_failed, failed_worker, step_until
from tests.systems import System, a_pool, a_system

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}
BOARD = "rv1-1"
FUTURE = """
UPDATE workers SET status = 'failed', failure_reason = 'from_the_future', completed_at = updated_at,
    failure_info = '{}' RETURNING 1
"""


def the_pod(system: System, name: str) -> dict[str, Any] | None:
    return next((pod for pod in system.cluster.pods() if pod["metadata"]["name"] == name), None)


def still_registered(system: System, name: str) -> bool:
    return any(r.name == name and r.removed_at is None for r in system.github.sim.ledger.runners())


async def test_runner_never_registered(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(hang=True))
        system.queue("acme/widgets", "rv1")
        for _ in range(6):
            await system.step(20)
        assert await system.statuses("workers") == {"running": 1}  # offline, but for less than the timeout
        await step_until(system, any_failed(system))
        row = await failed_worker(system, "runner_never_registered")
        pod = the_pod(system, row["name"])
        assert pod is not None  # its logs stay: it got a deadline and was not deleted
        assert pod["spec"]["activeDeadlineSeconds"] == 1
        assert "runner_never_registered" in pod["metadata"]["annotations"].values()
        assert row["failure_info"]["collected_at"]
        assert not still_registered(system, row["name"])


async def test_pod_stuck_pending_on_an_image_that_cannot_be_pulled(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(fail_to_pull="*"))
        system.queue("acme/widgets", "rv1")
        await system.turn()
        await system.step(50)
        assert await system.statuses("workers") == {"pending": 1}
        await step_until(system, any_failed(system), 10)
        row = await failed_worker(system, "pod_stuck_pending")
        (container,) = row["failure_info"]["containers"]
        assert "ImagePull" in str(container)
        assert row["failure_info"]["events"]
        assert not still_registered(system, row["name"])


async def test_an_invalid_image_name_fails_at_once_and_is_given_up_after_three(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1") | {"image": "NOT an image"}], boards={"rv1": 4}
    ) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        await system.step(5)
        assert await any_failed(system)()
        for _ in range(12):
            await system.step(60)
        (job,) = await system.rows("SELECT mark, attempts, own_faults, skip_reason, last_failure FROM jobs")
        assert (job["mark"], job["own_faults"], job["last_failure"]) == ("gave_up", 3, "pod_stuck_pending")
        assert await system.statuses("workers") == {"failed": 3}
        system.github.sim.cancel_job(job_id)
        await system.step()
        assert await system.statuses() == {"completed": 1}  # GitHub is the truth, mark or not


async def test_runner_idle(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        for _ in range(20):
            await system.step(30)
        assert await system.statuses("workers") == {"running": 1}
        await step_until(system, any_failed(system), 30)
        row = await failed_worker(system, "runner_idle")
        assert row["idle_since"] is not None
        assert not still_registered(system, row["name"])
        assert await system.rows("SELECT 1 FROM holds") == []  # nobody's habits close a pool


async def test_pod_stuck_after_job(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(never_exits=True))
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step(290)
        assert await system.statuses("workers") == {"running": 1}
        await step_until(system, any_failed(system))
        row = await failed_worker(system, "pod_stuck_after_job")
        await system.step(5)
        pod = the_pod(system, row["name"])
        assert pod is not None
        assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
        assert await system.statuses() == {"completed": 1}


async def test_node_unreachable(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.queue("acme/widgets", "rv1", seconds=3600)
        await system.turn()
        await system.step(10)
        system.cluster.kill_kubelet(BOARD)
        await step_until(system, any_failed(system))
        row = await failed_worker(system, "node_unreachable")
        assert row["failure_info"]["node"] == BOARD
        assert the_pod(system, row["name"]) is None  # force-deleted: no kubelet will ever say that it ended
        assert await system.rows("SELECT 1 FROM holds") == []


async def test_pod_missing(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.queue("acme/widgets", "rv1")
        await system.turn()
        (pod,) = system.cluster.pods()
        await system.controller.cluster.force_delete_pod(pod["metadata"]["name"])
        await system.turn()
        row = await failed_worker(system, "pod_missing")
        assert row["pod_ended_at"] is not None


async def test_pod_failed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(crash=3, last_words=("no space left on device",)))
        system.queue("acme/widgets", "rv1")
        await system.turn()
        await system.step(5)
        row = await failed_worker(system, "pod_failed")
        assert row["failure_info"]["exit_code"] == 3
        assert "no space left on device" in row["failure_info"]["log_tail"]
        assert row["node"] == BOARD


async def test_a_log_that_could_not_be_read_is_asked_for_again(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(crash=3, last_words=("no space left on device",)))
        away = system.cluster.faults.add(operation="get pods/log", status=503, times=None)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        await system.step(5)
        info = (await failed_worker(system, "pod_failed"))["failure_info"]
        assert info["events"]
        assert info.keys().isdisjoint({"log_tail", "collected_at"})
        system.cluster.faults.remove(away.name)
        await system.step(5)
        info = (await failed_worker(system, "pod_failed"))["failure_info"]
        assert "no space left on device" in info["log_tail"]
        assert info["collected_at"]


async def test_a_log_that_nobody_ever_answers_for_is_done_without(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(crash=3))
        away = system.cluster.faults.add(operation="get pods/log", status=503, times=None)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        for _ in range(7):
            await system.step(60)
        asked = away.hits
        await system.step(60)
        assert away.hits == asked
        assert (await failed_worker(system, "pod_failed"))["failure_info"]["collected_at"]


async def test_a_log_that_cannot_be_read_is_not_asked_for_in_every_iteration(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(crash=3))
        away = system.cluster.faults.add(operation="get pods/log", status=503, times=None)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        await system.step(5)
        asked = away.hits
        for _ in range(30):
            await system.step(1)
        assert away.hits <= asked + 3


async def test_provision_failed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.faults.add(operation="create pods", status=403, times=1)
        system.queue("acme/widgets", "rv1")
        await system.turn()
        row = await failed_worker(system, "provision_failed")
        assert row["failure_info"]["error"] == "ClusterForbidden"
        assert not still_registered(system, row["name"])


async def test_runner_removed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.github.sim.behaviour.remove_idle_after = timedelta(minutes=5)
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        await step_until(system, any_failed(system), 30)
        row = await failed_worker(system, "runner_removed")
        assert row["online_at"] is not None
        assert await system.rows("SELECT 1 FROM holds") == []


async def test_no_job_ran(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour(BOARD, Behaviour(crash=0))
        system.queue("acme/widgets", "rv1")
        await system.turn()
        await system.step(40)
        assert await system.statuses("workers") == {"running": 1}  # its `in_progress` might still come
        await step_until(system, any_failed(system))
        row = await failed_worker(system, "no_job_ran")
        assert row["failure_info"]["exit_code"] == 0


async def test_runner_version_refused(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.github.sim.refuse_runner_versions("acme", "9.0.0")
        system.queue("acme/widgets", "rv1")
        await system.turn()
        await system.step(5)
        row = await failed_worker(system, "runner_version_refused")
        assert row["failure_info"]["exit_code"] == 7
        assert "deprecated" in row["failure_info"]["log_tail"]
        (hold,) = await system.rows("SELECT scope, target FROM holds")
        assert hold == {"scope": "pool", "target": "rv1"}


async def test_what_a_pod_says_is_kept_without_secrets_and_without_what_no_row_takes(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.queue("acme/widgets", "rv1", seconds=3600)
        await system.turn()
        (pod,) = system.cluster.pods()
        token = "ghs_" + "a" * 36

        def evict(there: dict[str, Any]) -> None:
            there["status"] |= {"phase": "Failed", "reason": "Evicted", "message": f"no\x00 memory, {token}"}

        system.cluster.store.change(PODS, (pod["metadata"]["namespace"], pod["metadata"]["name"]), evict)
        system.cluster.faults.add(operation="get pods", status=500, times=None)  # no report tells more
        await system.turn()
        row = await failed_worker(system, "pod_failed")
        assert row["failure_info"]["message"] == "no memory, [redacted]"


@pytest.mark.parametrize("intent", [True, False], ids=["an intent", "an ending"])
async def test_a_reason_that_only_a_newer_program_knows_stops_no_step(
    intent: bool, database_url: str, tmp_path: Path
) -> None:
    """The program was rolled back; its rows stay as they are."""
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        await system.step(5)
        if intent:
            await system.rows("UPDATE workers SET ending_reason = 'from_the_future' RETURNING 1")
            await system.step(30)
            row = await failed_worker(system, "unfamiliar")
            assert row["ending_reason"] == "from_the_future"
            assert not still_registered(system, row["name"])
        else:
            await system.rows(FUTURE)
            await system.step(30)
        assert system.controller.loop.snapshot().last_error is None
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        assert system.controller.loop.snapshot().last_error is None


async def test_an_unknown_intent_ends_as_such_when_its_pod_does(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.queue("acme/widgets", "rv1", seconds=3600)
        await system.turn()
        system.github.sim.faults.add(operation="actions/delete-self-hosted-runner.*", status=500, times=None)
        await system.rows("UPDATE workers SET ending_reason = 'from_the_future' RETURNING 1")
        (pod,) = system.cluster.pods()
        await system.controller.cluster.force_delete_pod(pod["metadata"]["name"])
        await system.step(5)
        assert (await failed_worker(system, "unfamiliar"))["ending_reason"] == "from_the_future"
        assert system.controller.loop.snapshot().last_error is None
