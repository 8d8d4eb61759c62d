"""Jobs and runs: read, run again, dispatched."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from controller.simulators.github.errors import ApiError, invalid, not_found
from controller.simulators.github.jobs import run_state
from controller.simulators.github.operations import Answer, Call, find_repository
from controller.simulators.github.pages import paginate
from controller.simulators.github.payloads import actions
from controller.simulators.github.payloads.accounts import bot
from controller.simulators.github.payloads.forms import HTML
from controller.simulators.github.state import Job, Json, Run

MOST_INPUTS = 25
SEARCH_ENDS = 1_000  # filtered searches show no more
RERUN = ("failure", "cancelled", "timed_out")


def get_job(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/actions/jobs/{job_id}."""
    job = _job(call)
    if _hidden(call, job):
        raise not_found()
    return Answer(body=_show(call, job))


def list_run_jobs(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}/jobs."""
    run = _run(call)
    jobs = run.jobs if call.query.get("filter") == "all" else run.latest_jobs()
    jobs = [job for job in jobs if not (job.hidden_in_list and _hidden(call, job))]
    page, headers = paginate(call, jobs)
    body = {"total_count": len(jobs), "jobs": [_show(call, job) for job in page]}
    return Answer(body=body, headers=headers)


def get_run(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/actions/runs/{run_id}."""
    return Answer(body=actions.workflow_run(call.github.base_url, _run(call)))


def list_runs(call: Call) -> Answer:
    """GET /repos/{owner}/{repo}/actions/runs: newest first; a filtered search ends at 1,000 results."""
    runs = list(reversed(find_repository(call).runs.values()))
    tests = _filters(call)
    if tests:
        runs = [run for run in runs if all(test(run) for test in tests)][:SEARCH_ENDS]
    page, headers = paginate(call, runs)
    shown = [actions.workflow_run(call.github.base_url, run) for run in page]
    return Answer(body={"total_count": len(runs), "workflow_runs": shown}, headers=headers)


def rerun_failed_jobs(call: Call) -> Answer:
    """POST /repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs."""
    run = _run(call)
    failed = [job for job in run.latest_jobs() if job.conclusion in RERUN]
    if run_state(run)[0] != "completed" or not failed:
        raise ApiError(403, "This workflow run cannot be retried")
    call.github.jobs.rerun(run, failed)
    return Answer(201, {})


def rerun_job(call: Call) -> Answer:
    """POST /repos/{owner}/{repo}/actions/jobs/{job_id}/rerun."""
    job = _job(call)
    if run_state(job.run)[0] != "completed":
        raise ApiError(403, "This workflow run is already running")
    call.github.jobs.rerun(job.run, [job])
    return Answer(201, {})


def dispatch(call: Call) -> Answer:
    """POST /repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches: 204, or 200 with the run's details."""
    repository = find_repository(call)
    if "return_run_details" in call.body and not call.github.behaviour.tells_started_run:
        raise ApiError(422, 'Invalid request.\n\n"return_run_details" is not a permitted key.')
    wanted = call.params["workflow_id"]
    known = repository.workflows.values()
    workflow = next((w for w in known if wanted in (w.file, str(w.id))), None)
    if workflow is None:
        raise not_found()
    ref, inputs = call.body.get("ref"), call.body.get("inputs", {})
    if not isinstance(ref, str):
        raise invalid("Invalid request.", "ref is missing")
    branch = ref.removeprefix("refs/heads/")
    if branch not in repository.branches:
        raise invalid(f"No ref found for: {ref}")
    if not isinstance(inputs, dict) or len(inputs) > MOST_INPUTS:
        raise invalid(f"inputs may have at most {MOST_INPUTS} properties")
    for name, value in inputs.items():
        if not isinstance(value, str):
            raise ApiError(422, f"Invalid request.\n\nFor 'properties/{name}', {value} is not a string.")
    run = call.github.jobs.queue_run(
        repository,
        workflow.jobs,
        event="workflow_dispatch",
        branch=branch,
        workflow=workflow.file,
        actor=bot(call.caller.app),
        inputs=inputs,
    )
    if call.body.get("return_run_details") is not True:
        return Answer(204)
    url = f"{call.github.base_url}/repos/{repository.full_name}/actions/runs/{run.id}"
    page = f"{HTML}/{repository.full_name}/actions/runs/{run.id}"
    return Answer(body={"workflow_run_id": run.id, "run_url": url, "html_url": page})


def _job(call: Call) -> Job:
    repository = find_repository(call)
    job = call.github.world.jobs.get(call.number("job_id"))
    if job is None or job.repository is not repository:
        raise not_found()
    return job


def _run(call: Call) -> Run:
    run = find_repository(call).runs.get(call.number("run_id"))
    if run is None:
        raise not_found()
    return run


def _hidden(call: Call, job: Job) -> bool:
    return job.hidden_until is not None and call.github.now() < job.hidden_until


def _show(call: Call, job: Job) -> Json:
    zero = call.github.behaviour.absent_runner_is_zero
    return actions.job(call.github.base_url, job, absent_is_zero=zero)


def _filters(call: Call) -> list[Callable[[Run], bool]]:
    query = call.query
    tests: list[Callable[[Run], bool]] = []
    if "status" in query:
        tests.append(lambda run: query["status"] in run_state(run))
    if "event" in query:
        tests.append(lambda run: run.event == query["event"])
    if "branch" in query:
        tests.append(lambda run: run.branch == query["branch"])
    if "head_sha" in query:
        tests.append(lambda run: run.head_sha == query["head_sha"])
    if "actor" in query:
        tests.append(lambda run: run.actor.login.lower() == query["actor"].lower())
    if "check_suite_id" in query:
        tests.append(lambda run: str(run.id) == query["check_suite_id"])
    if "created" in query:
        earliest, latest = created_range(query["created"])
        tests.append(lambda run: earliest <= run.created_at.replace(microsecond=0) <= latest)
    return tests


def created_range(text: str) -> tuple[datetime, datetime]:
    """Read GitHub's search syntax for times: `>=T`, `<T`, `A..B`, `*..B`, or one moment or day."""
    earliest, latest = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    second = timedelta(seconds=1)
    try:
        if ".." in text:
            low, high = text.split("..", 1)
            return (
                earliest if low == "*" else _moment(low)[0],
                latest if high == "*" else _moment(high)[1],
            )
        for sign in (">=", "<=", ">", "<"):
            if text.startswith(sign):
                first, last = _moment(text.removeprefix(sign))
                bounds = {">=": (first, latest), "<=": (earliest, last)}
                bounds |= {">": (last + second, latest), "<": (earliest, first - second)}
                return bounds[sign]
        return _moment(text)
    except ValueError as error:
        raise invalid("Validation Failed", "created is no date") from error


def _moment(text: str) -> tuple[datetime, datetime]:
    """The first and last second that a moment or a day means."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole_day = "T" not in text
    return moment, moment + timedelta(days=1, seconds=-1) if whole_day else moment
