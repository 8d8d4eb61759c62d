"""Every REST operation that is simulated, as one visible table; ids and templates are GitHub's."""

from controller.simulators.github.operations import Operation
from controller.simulators.github.routes import apps, hooks, runners, workflows

ORG_READ, ORG_WRITE = (("organization_self_hosted_runners", level) for level in ("read", "write"))
ADMIN_READ, ADMIN_WRITE = (("administration", level) for level in ("read", "write"))
ACTIONS_READ, ACTIONS_WRITE = (("actions", level) for level in ("read", "write"))

APP = "/app"
HOOK = "/app/hook/deliveries"
ORG = "/orgs/{org}"
ORG_RUNNERS = f"{ORG}/actions/runners"
GROUPS = f"{ORG}/actions/runner-groups"
REPO = "/repos/{owner}/{repo}"
REPO_RUNNERS = f"{REPO}/actions/runners"
JOB = f"{REPO}/actions/jobs/{{job_id}}"
RUNS = f"{REPO}/actions/runs"
DISPATCHES = f"{REPO}/actions/workflows/{{workflow_id}}/dispatches"
INSTALLATION = f"{APP}/installations/{{installation_id}}"

OPERATIONS = (
    Operation("apps/get-authenticated", "GET", APP, apps.get_app),
    Operation("apps/list-installations", "GET", f"{APP}/installations", apps.list_installations),
    Operation("apps/get-installation", "GET", INSTALLATION, apps.get_installation),
    Operation(
        "apps/create-installation-access-token", "POST", f"{INSTALLATION}/access_tokens", apps.create_token
    ),
    Operation("apps/get-org-installation", "GET", f"{ORG}/installation", apps.get_org_installation),
    Operation(
        "apps/get-user-installation", "GET", "/users/{username}/installation", apps.get_user_installation
    ),
    Operation("apps/get-repo-installation", "GET", f"{REPO}/installation", apps.get_repo_installation),
    Operation("apps/list-webhook-deliveries", "GET", HOOK, hooks.list_deliveries),
    Operation("apps/get-webhook-delivery", "GET", f"{HOOK}/{{delivery_id}}", hooks.get_delivery),
    Operation("apps/redeliver-webhook-delivery", "POST", f"{HOOK}/{{delivery_id}}/attempts", hooks.redeliver),
    Operation("rate-limit/get", "GET", "/rate_limit", apps.get_rate_limit, anyone=True),
    Operation("actions/list-self-hosted-runner-groups-for-org", "GET", GROUPS, runners.list_groups, ORG_READ),
    Operation(
        "actions/create-self-hosted-runner-group-for-org", "POST", GROUPS, runners.create_group, ORG_WRITE
    ),
    Operation(
        "actions/get-self-hosted-runner-group-for-org",
        "GET",
        f"{GROUPS}/{{runner_group_id}}",
        runners.get_group,
        ORG_READ,
    ),
    Operation(
        "actions/list-self-hosted-runners-in-group-for-org",
        "GET",
        f"{GROUPS}/{{runner_group_id}}/runners",
        runners.list_group_runners,
        ORG_READ,
    ),
    Operation("actions/list-self-hosted-runners-for-org", "GET", ORG_RUNNERS, runners.list_runners, ORG_READ),
    Operation(
        "actions/generate-runner-jitconfig-for-org",
        "POST",
        f"{ORG_RUNNERS}/generate-jitconfig",
        runners.generate_jitconfig,
        ORG_WRITE,
    ),
    Operation(
        "actions/get-self-hosted-runner-for-org",
        "GET",
        f"{ORG_RUNNERS}/{{runner_id}}",
        runners.get_runner,
        ORG_READ,
    ),
    Operation(
        "actions/delete-self-hosted-runner-from-org",
        "DELETE",
        f"{ORG_RUNNERS}/{{runner_id}}",
        runners.delete_runner,
        ORG_WRITE,
    ),
    Operation(
        "actions/list-self-hosted-runners-for-repo", "GET", REPO_RUNNERS, runners.list_runners, ADMIN_READ
    ),
    Operation(
        "actions/generate-runner-jitconfig-for-repo",
        "POST",
        f"{REPO_RUNNERS}/generate-jitconfig",
        runners.generate_jitconfig,
        ADMIN_WRITE,
    ),
    Operation(
        "actions/get-self-hosted-runner-for-repo",
        "GET",
        f"{REPO_RUNNERS}/{{runner_id}}",
        runners.get_runner,
        ADMIN_READ,
    ),
    Operation(
        "actions/delete-self-hosted-runner-from-repo",
        "DELETE",
        f"{REPO_RUNNERS}/{{runner_id}}",
        runners.delete_runner,
        ADMIN_WRITE,
    ),
    Operation("actions/get-job-for-workflow-run", "GET", JOB, workflows.get_job, ACTIONS_READ),
    Operation(
        "actions/re-run-job-for-workflow-run", "POST", f"{JOB}/rerun", workflows.rerun_job, ACTIONS_WRITE
    ),
    Operation("actions/list-workflow-runs-for-repo", "GET", RUNS, workflows.list_runs, ACTIONS_READ),
    Operation("actions/get-workflow-run", "GET", f"{RUNS}/{{run_id}}", workflows.get_run, ACTIONS_READ),
    Operation(
        "actions/list-jobs-for-workflow-run",
        "GET",
        f"{RUNS}/{{run_id}}/jobs",
        workflows.list_run_jobs,
        ACTIONS_READ,
    ),
    Operation(
        "actions/re-run-workflow-failed-jobs",
        "POST",
        f"{RUNS}/{{run_id}}/rerun-failed-jobs",
        workflows.rerun_failed_jobs,
        ACTIONS_WRITE,
    ),
    Operation("actions/create-workflow-dispatch", "POST", DISPATCHES, workflows.dispatch, ACTIONS_WRITE),
)


def paths(operation: Operation) -> list[str]:
    """The template, and the numeric twin that GitHub uses in links and redirects."""
    template = operation.template
    twins = [
        twin + template.removeprefix(prefix)
        for prefix, twin in (
            (ORG, "/organizations/{organization_id}"),
            (REPO, "/repositories/{repository_id}"),
        )
        if template.startswith(prefix)
    ]
    return [template, *twins]
