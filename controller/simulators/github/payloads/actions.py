"""Jobs, runs, runners and runner groups as JSON."""

from controller.simulators.github.jobs import run_state
from controller.simulators.github.payloads.accounts import simple_user
from controller.simulators.github.payloads.forms import HTML, maybe_stamp, node_id, stamp
from controller.simulators.github.payloads.repositories import repository
from controller.simulators.github.state import Account, Job, Json, Run, Runner, RunnerGroup

FORKS = 500_000_000  # added to the id of a repository: the id of a fork of it


def job(api: str, item: Job, *, absent_is_zero: bool = False) -> Json:
    """A job, for REST and webhooks alike."""
    repo = f"{api}/repos/{item.repository.full_name}"
    # Who was only offered the job is no runner of it yet.
    runner = item.runner if item.started_at is not None else None
    absent_id, absent_name = (0, "") if absent_is_zero else (None, None)
    skipped = item.conclusion == "skipped"
    return {
        "id": item.id,
        "run_id": item.run.id,
        "workflow_name": item.run.workflow_file,
        "head_branch": item.run.branch,
        "run_url": f"{repo}/actions/runs/{item.run.id}",
        "run_attempt": item.attempt,
        "node_id": node_id("CheckRun", item.id),
        "head_sha": item.run.head_sha,
        "url": f"{repo}/actions/jobs/{item.id}",
        "html_url": f"{HTML}/{item.repository.full_name}/actions/runs/{item.run.id}/job/{item.id}",
        "status": item.status,
        "conclusion": item.conclusion,
        "created_at": stamp(item.created_at),
        "started_at": stamp(item.started_at or item.queued_at or item.created_at),
        "completed_at": maybe_stamp(item.completed_at),
        "name": item.spec.name,
        "steps": [_step(item)] if item.started_at is not None else [],
        "check_run_url": f"{repo}/check-runs/{item.id}",
        "labels": [] if skipped else list(item.spec.labels),
        "runner_id": runner.id if runner else absent_id,
        "runner_name": runner.name if runner else absent_name,
        "runner_group_id": runner.group.id if runner else absent_id,
        "runner_group_name": runner.group.name if runner else absent_name,
    }


def _step(item: Job) -> Json:
    ended = item.status == "completed"
    return {
        "name": "Set up job",
        "status": "completed" if ended else "in_progress",
        "conclusion": item.conclusion if ended else None,
        "number": 1,
        "started_at": maybe_stamp(item.started_at),
        "completed_at": maybe_stamp(item.completed_at),
    }


def workflow_run(api: str, item: Run) -> Json:
    """A run, with its repository twice as GitHub has it."""
    repo = f"{api}/repos/{item.repository.full_name}"
    url = f"{repo}/actions/runs/{item.id}"
    status, conclusion = run_state(item)
    actor = simple_user(api, item.actor)
    home = repository(api, item.repository, simple_user(api, item.repository.owner))
    name = item.workflow_file.removesuffix(".yml")
    return {
        "id": item.id,
        "name": name,
        "node_id": node_id("WorkflowRun", item.id),
        "head_branch": item.branch,
        "head_sha": item.head_sha,
        "path": f".github/workflows/{item.workflow_file}@{item.branch}",
        "display_title": name,
        "run_number": item.number,
        "run_attempt": item.attempt,
        "event": item.event,
        "status": status,
        "conclusion": conclusion,
        "workflow_id": item.workflow_id,
        "check_suite_id": item.id,
        "check_suite_node_id": node_id("CheckSuite", item.id),
        "url": url,
        "html_url": f"{HTML}/{item.repository.full_name}/actions/runs/{item.id}",
        "pull_requests": [],
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "run_started_at": stamp(item.created_at),
        "actor": actor,
        "triggering_actor": actor,
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "check_suite_url": f"{repo}/check-suites/{item.id}",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "previous_attempt_url": f"{url}/attempts/{item.attempt - 1}" if item.attempt > 1 else None,
        "workflow_url": f"{repo}/actions/workflows/{item.workflow_id}",
        "head_commit": {
            "id": item.head_sha,
            "tree_id": item.head_sha,
            "message": "Change",
            "timestamp": stamp(item.created_at),
            "author": {"name": "Ada", "email": "ada@example.com"},
            "committer": {"name": "Ada", "email": "ada@example.com"},
        },
        "repository": home,
        "head_repository": {**home, "id": item.repository.id + FORKS, "fork": True} if item.fork else home,
    }


def runner(item: Runner, *, online: bool, busy: bool) -> Json:
    """A self-hosted runner."""
    return {
        "id": item.id,
        "name": item.name,
        "os": item.os,
        "status": "online" if online else "offline",
        "busy": busy,
        "ephemeral": True,
        "version": item.version,
        "runner_group_id": item.group.id,
        "labels": [
            {"id": index, "name": label, "type": "custom"} for index, label in enumerate(item.labels, 1)
        ],
    }


def runner_group(api: str, account: Account, item: RunnerGroup) -> Json:
    """A runner group of an organization."""
    url = f"{api}/orgs/{account.login}/actions/runner-groups/{item.id}"
    body: Json = {
        "id": item.id,
        "name": item.name,
        "visibility": item.visibility,
        "default": item.default,
        "runners_url": f"{url}/runners",
        "hosted_runners_url": f"{url}/hosted-runners",
        "inherited": False,
        "allows_public_repositories": item.allows_public_repositories,
        "restricted_to_workflows": item.restricted_to_workflows,
        "selected_workflows": list(item.selected_workflows),
        "workflow_restrictions_read_only": False,
    }
    if item.visibility == "selected":
        body["selected_repositories_url"] = f"{url}/repositories"
    return body
