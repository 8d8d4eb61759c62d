"""From webhook to pod to completed, through everything that is real but GitHub and the cluster."""

import json
from pathlib import Path

from controller.simulators.github import WebhookRule
from tests.systems import BOARD_LABEL, IMAGE, a_pool, a_system


async def test_a_queued_job_becomes_a_pod_runs_and_is_completed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.turn()
        (pod,) = system.cluster.pods()
        await system.until(system.finished(ids))
        await system.step()
        (job,) = await system.rows("SELECT * FROM jobs")
        (worker,) = await system.rows("SELECT * FROM workers")
        assert (job["status"], job["conclusion"]) == ("completed", "success")
        assert worker["status"] == "completed"
        assert job["runner_name"] == worker["name"] == pod["metadata"]["name"]


async def test_a_queued_job_costs_no_request_before_its_jit_call(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        first = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(first))
        before = len(system.github.sim.requests)
        system.queue("acme/widgets", "rv1")
        await system.turn()
        asked = [each.operation for each in list(system.github.sim.requests)[before:]]
        assert [each for each in asked if not each.startswith("runner/")] == [
            "actions/generate-runner-jitconfig-for-org"
        ]


async def test_a_personal_account_gets_a_runner_of_its_repository(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        ids = system.queue("jane/one", "rv1")
        await system.until(system.finished(ids))
        (runner,) = system.github.sim.ledger.runners()
        assert (runner.repository, runner.group_id) == ("jane/one", 1)


async def test_an_organization_gets_the_runner_group(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        groups = {group.id: group.name for group in system.github.sim.world.accounts["acme"].groups.values()}
        (runner,) = system.github.sim.ledger.runners()
        assert groups[runner.group_id] == "RISE RISC-V Runners"


async def test_a_failed_worker_is_no_supply_and_its_job_gets_another(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        system.cluster.faults.add(operation="create pods", status=503, times=1)
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step()
        assert await system.statuses("workers") == {"failed": 1, "completed": 1}
        (failed,) = await system.rows("SELECT failure_reason FROM workers WHERE status = 'failed'")
        assert failed["failure_reason"] == "provision_failed"
        assert not [runner for runner in system.github.sim.ledger.runners() if runner.removed_at is None]


async def test_a_job_cancelled_before_provisioning_is_completed_without_a_runner(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(job_id)
        await system.step()
        (job,) = await system.rows("SELECT status, conclusion FROM jobs")
        assert (job["status"], job["conclusion"]) == ("completed", "cancelled")
        assert await system.statuses("workers") == {}


async def test_pods_and_secrets_go_after_the_grace_period(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step()
        assert len(system.cluster.pods()) == 1
        await system.step(5 * 3600)
        assert len(system.cluster.pods()) == 1
        await system.step(3700)
        await system.step()
        assert system.cluster.pods() == []
        assert await system.controller.cluster.list_secrets() == {}
        assert await system.statuses("workers") == {"completed": 1}  # the row outlives the pod


async def test_lost_in_progress_and_completed_make_no_second_worker(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        for action in ("in_progress", "completed"):
            system.github.sim.faults.webhooks.rules.append(WebhookRule("lose", action=action))
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        for _ in range(3):
            await system.step()
        assert await system.statuses() == {"completed": 1}
        assert await system.statuses("workers") == {"completed": 1}


async def test_the_stored_pod_is_the_one_of_the_description(database_url: str, tmp_path: Path) -> None:
    pools = [a_pool("scw-em-rv1", ["ubuntu-24.04-riscv"])]
    async with a_system(database_url, tmp_path, pools=pools, boards={"scw-em-rv1": 1}) as system:
        system.queue("acme/widgets", "ubuntu-24.04-riscv")
        await system.turn()
        (pod,) = system.cluster.pods()
        spec, (container,) = pod["spec"], pod["spec"]["containers"]
        assert pod["metadata"]["namespace"] == "default"
        assert pod["metadata"]["labels"]["app"] == "rise-riscv-runner"
        assert pod["metadata"]["labels"][BOARD_LABEL] == "scw-em-rv1"
        assert spec["nodeSelector"] == {BOARD_LABEL: "scw-em-rv1"}
        assert container["resources"]["limits"]["riseproject.com/runner"] == "1"
        assert container["resources"]["requests"]["ephemeral-storage"] == "40Gi"
        assert container["resources"]["limits"]["ephemeral-storage"] == "90Gi"
        assert spec["activeDeadlineSeconds"] == 525_600
        assert container["securityContext"]["privileged"] is True
        assert spec["hostNetwork"] is True
        env = {each["name"]: each for each in container["env"]}
        assert "value" not in env["RUNNER_JITCONFIG"]
        assert env["RUNNER_JITCONFIG"]["valueFrom"]["secretKeyRef"]["key"] == "jitconfig"
        assert env["RUNNER_WAIT_FOR_DOCKER_IN_SECONDS"]["value"] == "60"
        assert container["image"] == IMAGE
        assert "command" not in container
        assert "args" not in container
        assert "initContainers" not in spec
        assert not spec.get("volumes")
        assert spec["restartPolicy"] == "Never"
        assert spec["automountServiceAccountToken"] is False


async def test_only_boards_of_the_named_kind_ask_for_ephemeral_storage(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("bpi-f3")], boards={"bpi-f3": 1}) as system:
        system.queue("acme/widgets", "bpi-f3")
        await system.turn()
        (pod,) = system.cluster.pods()
        (container,) = pod["spec"]["containers"]
        assert "ephemeral-storage" not in json.dumps(container["resources"])
