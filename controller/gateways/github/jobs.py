"""Workflow jobs and runs as GitHub shows them. Unknown statuses pass through: the core judges them."""

from datetime import timedelta

from controller.domain.jobs import normalise_labels
from controller.domain.sightings import JobSighting, RunSighting
from controller.gateways.github.answers import Item
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.pages import PER_PAGE, read_all
from controller.gateways.github.paths import repo_path

STARTED = ("in_progress", "completed")
MOST_RUNS = 1_000  # GitHub's own end of a list of runs that was asked for by a status or a time
ACTIVE = ("queued", "in_progress")  # a matrix of which one job has begun is in progress, whatever still waits


async def get_job(ask: Ask, repo: str, job_id: int) -> JobSighting:
    """One job."""
    answer = await ask(Call("get_job", "GET", f"{repo_path(repo)}/actions/jobs/{job_id}"))
    return read_job(answer.item())


async def list_run_jobs(ask: Ask, repo: str, run_id: int, deadline: timedelta) -> tuple[JobSighting, ...]:
    """All jobs of a run's latest attempt."""
    path = f"{repo_path(repo)}/actions/runs/{run_id}/jobs"
    call = Call("list_run_jobs", "GET", path, {"filter": "latest", "per_page": PER_PAGE})
    return tuple(read_job(item) for item in await read_all(ask, call, "jobs", deadline))


async def get_run(ask: Ask, repo: str, run_id: int) -> RunSighting:
    """One run."""
    path = f"{repo_path(repo)}/actions/runs/{run_id}"
    answer = await ask(Call("get_run", "GET", path, {"exclude_pull_requests": "true"}))
    return read_run(answer.item())


async def list_active_runs(ask: Ask, repo: str, deadline: timedelta) -> tuple[RunSighting, ...]:
    """The runs that may hold queued jobs: the queued ones, and those of which some jobs have begun."""
    found: dict[int, RunSighting] = {}
    for status in ACTIVE:
        query: dict[str, str | int] = {
            "status": status,
            "exclude_pull_requests": "true",
            "per_page": PER_PAGE,
        }
        call = Call("list_runs", "GET", f"{repo_path(repo)}/actions/runs", query)
        for item in await read_all(ask, call, "workflow_runs", deadline, MOST_RUNS):
            run = read_run(item)
            found.setdefault(run.run_id, run)
    return tuple(found.values())


def read_job(item: Item) -> JobSighting:
    """Read one job of an answer."""
    status = item.text("status")
    # Without a runner GitHub gives null or 0, and null or an empty name.
    runner_name = item.optional_text("runner_name") if item.optional_integer("runner_id") else None
    return JobSighting(
        job_id=item.integer("id"),
        run_id=item.integer("run_id"),
        status=status,
        conclusion=item.optional_text("conclusion"),
        runner_name=runner_name or None,
        labels=normalise_labels(item.texts("labels")),
        created_at=item.optional_time("created_at") or item.time("started_at"),
        # Never null on GitHub, even while the job is queued: then it is no proof of a start.
        started_at=item.optional_time("started_at") if status in STARTED else None,
        completed_at=item.optional_time("completed_at"),
        name=item.optional_text("name") or "",
        html_url=item.optional_text("html_url") or "",
        run_attempt=item.optional_integer("run_attempt") or 1,
    )


def read_run(item: Item) -> RunSighting:
    """Read one run of an answer."""
    return RunSighting(
        item.integer("id"), item.optional_text("status"), item.optional_text("conclusion"), _foreign(item)
    )


def _foreign(item: Item) -> bool:
    """Whether the code is another repository's; a fork that was deleted meanwhile is null."""
    home, head = item.optional_item("repository"), item.optional_item("head_repository")
    if head is None:
        return (item.optional_text("event") or "").startswith("pull_request")
    return home is not None and head.integer("id") != home.integer("id")
