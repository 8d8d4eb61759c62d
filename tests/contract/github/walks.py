"""One successful way through every REST operation; `test_operations` walks them all.

Each walk gets the world and its callers, makes what the operation needs, and returns the operation's answer.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx

from controller.simulators.github import GitHubSimulator, JobSpec
from tests.contract.github.callers import RISCV, Caller, queue


@dataclass(frozen=True, slots=True)
class Walker:
    """Who walks, and where."""

    sim: GitHubSimulator
    app: Caller
    user_app: Caller
    acme: Caller
    jane: Caller
    installation_id: int  # acme's


Walk = Callable[[Walker], Awaitable[httpx.Response]]
WALKS: dict[str, Walk] = {}


def walks(operation: str) -> Callable[[Walk], Walk]:
    """Enter a walk under its operation's id."""

    def enter(walk: Walk) -> Walk:
        WALKS[operation] = walk
        return walk

    return enter


@walks("apps/get-authenticated")
async def _app(walker: Walker) -> httpx.Response:
    answer = await walker.app.get("/app")
    assert answer.json()["installations_count"] == 1
    return answer


@walks("apps/list-installations")
async def _installations(walker: Walker) -> httpx.Response:
    answer = await walker.app.get("/app/installations")
    assert [each["account"]["login"] for each in answer.json()] == ["acme"]
    return answer


@walks("apps/get-installation")
async def _installation(walker: Walker) -> httpx.Response:
    answer = await walker.app.get(f"/app/installations/{walker.installation_id}")
    assert answer.json()["suspended_at"] is None
    return answer


@walks("apps/create-installation-access-token")
async def _token(walker: Walker) -> httpx.Response:
    body = {"repositories": ["widgets"], "permissions": {"actions": "read"}}
    answer = await walker.app.post(f"/app/installations/{walker.installation_id}/access_tokens", body)
    assert answer.json()["permissions"] == {"actions": "read"}
    assert [each["full_name"] for each in answer.json()["repositories"]] == ["acme/widgets"]
    return answer


@walks("apps/get-org-installation")
async def _org_installation(walker: Walker) -> httpx.Response:
    return await walker.app.get("/orgs/acme/installation")


@walks("apps/get-user-installation")
async def _user_installation(walker: Walker) -> httpx.Response:
    return await walker.user_app.get("/users/jane/installation")


@walks("apps/get-repo-installation")
async def _repo_installation(walker: Walker) -> httpx.Response:
    answer = await walker.app.get("/repos/acme/widgets/installation")
    assert answer.json()["id"] == walker.installation_id
    return answer


@walks("apps/list-webhook-deliveries")
async def _deliveries(walker: Walker) -> httpx.Response:
    answer = await walker.app.get("/app/hook/deliveries", status="failure")
    assert [each["event"] for each in answer.json()] == ["installation"]
    return answer


@walks("apps/get-webhook-delivery")
async def _delivery(walker: Walker) -> httpx.Response:
    answer = await walker.app.get(f"/app/hook/deliveries/{await _newest_delivery(walker)}")
    assert answer.json()["request"]["payload"]["action"] == "created"
    return answer


@walks("apps/redeliver-webhook-delivery")
async def _redelivery(walker: Walker) -> httpx.Response:
    return await walker.app.post(f"/app/hook/deliveries/{await _newest_delivery(walker)}/attempts")


@walks("rate-limit/get")
async def _rate_limit(walker: Walker) -> httpx.Response:
    answer = await walker.acme.get("/rate_limit")
    assert answer.json()["resources"]["core"]["remaining"] == 5_000
    assert answer.json()["rate"]["limit"] == 5_000
    return answer


@walks("actions/list-self-hosted-runner-groups-for-org")
async def _groups(walker: Walker) -> httpx.Response:
    answer = await walker.acme.get("/orgs/acme/actions/runner-groups")
    assert [each["name"] for each in answer.json()["runner_groups"]] == ["Default"]
    return answer


@walks("actions/create-self-hosted-runner-group-for-org")
async def _create_group(walker: Walker) -> httpx.Response:
    body = {"name": "boards", "visibility": "selected", "selected_repository_ids": [700_000_001]}
    answer = await walker.acme.post("/orgs/acme/actions/runner-groups", body)
    assert answer.json()["allows_public_repositories"] is False
    return answer


@walks("actions/get-self-hosted-runner-group-for-org")
async def _group(walker: Walker) -> httpx.Response:
    answer = await walker.acme.get("/orgs/acme/actions/runner-groups/1")
    assert answer.json()["default"] is True
    return answer


@walks("actions/list-self-hosted-runners-in-group-for-org")
async def _group_runners(walker: Walker) -> httpx.Response:
    await walker.acme.register("orgs/acme", "one")
    answer = await walker.acme.get("/orgs/acme/actions/runner-groups/1/runners")
    assert answer.json()["total_count"] == 1
    return answer


@walks("actions/generate-runner-jitconfig-for-org")
async def _org_jit(walker: Walker) -> httpx.Response:
    return await _jit(walker.acme, "orgs/acme")


@walks("actions/generate-runner-jitconfig-for-repo")
async def _repo_jit(walker: Walker) -> httpx.Response:
    return await _jit(walker.jane, "repos/jane/one")


@walks("actions/list-self-hosted-runners-for-org")
async def _org_runners(walker: Walker) -> httpx.Response:
    return await _runners(walker.acme, "orgs/acme")


@walks("actions/list-self-hosted-runners-for-repo")
async def _repo_runners(walker: Walker) -> httpx.Response:
    return await _runners(walker.jane, "repos/jane/one")


@walks("actions/get-self-hosted-runner-for-org")
async def _org_runner(walker: Walker) -> httpx.Response:
    runner = await walker.acme.register("orgs/acme", "one")
    return await walker.acme.get(f"/orgs/acme/actions/runners/{runner.id}")


@walks("actions/get-self-hosted-runner-for-repo")
async def _repo_runner(walker: Walker) -> httpx.Response:
    runner = await walker.jane.register("repos/jane/one", "one")
    return await walker.jane.get(f"/repos/jane/one/actions/runners/{runner.id}")


@walks("actions/delete-self-hosted-runner-from-org")
async def _delete_org_runner(walker: Walker) -> httpx.Response:
    runner = await walker.acme.register("orgs/acme", "one")
    return await walker.acme.delete(f"/orgs/acme/actions/runners/{runner.id}")


@walks("actions/delete-self-hosted-runner-from-repo")
async def _delete_repo_runner(walker: Walker) -> httpx.Response:
    runner = await walker.jane.register("repos/jane/one", "one")
    return await walker.jane.delete(f"/repos/jane/one/actions/runners/{runner.id}")


@walks("actions/get-job-for-workflow-run")
async def _job(walker: Walker) -> httpx.Response:
    job = queue(walker.sim)
    answer = await walker.jane.get(f"/repos/jane/one/actions/jobs/{job.id}")
    assert (answer.json()["status"], answer.json()["runner_id"]) == ("queued", None)
    assert answer.json()["started_at"] is not None
    return answer


@walks("actions/re-run-job-for-workflow-run")
async def _rerun_job(walker: Walker) -> httpx.Response:
    job = queue(walker.sim)
    walker.sim.cancel_job(job.id)
    answer = await walker.jane.post(f"/repos/jane/one/actions/jobs/{job.id}/rerun")
    assert [each.attempt for each in job.run.jobs] == [1, 2]
    return answer


@walks("actions/list-workflow-runs-for-repo")
async def _runs(walker: Walker) -> httpx.Response:
    older, newer = queue(walker.sim).run, queue(walker.sim).run
    answer = await walker.jane.get("/repos/jane/one/actions/runs", status="queued")
    assert [each["id"] for each in answer.json()["workflow_runs"]] == [newer.id, older.id]
    return answer


@walks("actions/get-workflow-run")
async def _run(walker: Walker) -> httpx.Response:
    answer = await walker.jane.get(f"/repos/jane/one/actions/runs/{queue(walker.sim).run.id}")
    assert (answer.json()["status"], answer.json()["conclusion"]) == ("queued", None)
    return answer


@walks("actions/list-jobs-for-workflow-run")
async def _run_jobs(walker: Walker) -> httpx.Response:
    run = walker.sim.queue_run("jane/one", [JobSpec(RISCV), JobSpec(RISCV)])
    answer = await walker.jane.get(f"/repos/jane/one/actions/runs/{run.id}/jobs")
    assert [each["id"] for each in answer.json()["jobs"]] == [job.id for job in run.jobs]
    return answer


@walks("actions/re-run-workflow-failed-jobs")
async def _rerun_failed(walker: Walker) -> httpx.Response:
    job = queue(walker.sim)
    walker.sim.cancel_job(job.id)
    return await walker.jane.post(f"/repos/jane/one/actions/runs/{job.run.id}/rerun-failed-jobs")


@walks("actions/create-workflow-dispatch")
async def _dispatch(walker: Walker) -> httpx.Response:
    walker.sim.add_workflow("jane/one", "ci.yml", [JobSpec(RISCV)])
    path = "/repos/jane/one/actions/workflows/ci.yml/dispatches"
    silent = await walker.jane.post(path, {"ref": "main", "inputs": {"board": "any"}})
    assert (silent.status_code, silent.content) == (204, b"")
    answer = await walker.jane.post(path, {"ref": "refs/heads/main", "return_run_details": True})
    assert answer.json()["workflow_run_id"] == max(walker.sim.world.runs)
    return answer


async def _newest_delivery(walker: Walker) -> int:
    return int((await walker.app.get("/app/hook/deliveries")).json()[0]["id"])


async def _jit(caller: Caller, where: str) -> httpx.Response:
    body = {"name": "one", "runner_group_id": 1, "labels": list(RISCV), "work_folder": "_work"}
    answer = await caller.post(f"/{where}/actions/runners/generate-jitconfig", body)
    runner = answer.json()["runner"]
    assert (runner["status"], runner["os"], runner["busy"]) == ("offline", "unknown", False)
    # Nothing is added to the labels that were asked for.
    assert [label["name"] for label in runner["labels"]] == list(RISCV)
    return answer


async def _runners(caller: Caller, where: str) -> httpx.Response:
    await caller.register(where, "one")
    await caller.register(where, "two")
    answer = await caller.get(f"/{where}/actions/runners", name="two")
    assert [each["name"] for each in answer.json()["runners"]] == ["two"]
    return answer
