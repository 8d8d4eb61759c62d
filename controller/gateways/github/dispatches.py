"""Starting workflows, and finding the run again whose start was not answered."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from controller.domain.schedules import StartedRun
from controller.errors import GitHubRefused
from controller.gateways.github.answers import Item
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.pages import PER_PAGE, read_all
from controller.gateways.github.paths import repo_path

DETAILS = "return_run_details"


async def dispatch_workflow(
    ask: Ask, repo: str, workflow: str, ref: str, inputs: Mapping[str, Any]
) -> StartedRun | None:
    """Start a workflow once; None: GitHub started it but did not say which run it is."""
    path = f"{repo_path(repo)}/actions/workflows/{quote(workflow, safe='')}/dispatches"
    body: dict[str, Any] = {"ref": ref}
    if inputs:
        body["inputs"] = {name: _text(value) for name, value in inputs.items()}
    call = Call("dispatch_workflow", "POST", path, body={**body, DETAILS: True})
    try:
        answer = await ask(call)
    except GitHubRefused as error:
        if DETAILS not in str(error):
            raise
        # Enterprise Server before 3.21 takes no such field: it has started nothing, and will without it.
        answer = await ask(replace(call, body=body))
    if answer.status == 204 or not answer.body:
        return None
    item = answer.item()
    return StartedRun(item.integer("workflow_run_id"), item.text("html_url"))


async def list_dispatched_runs(
    ask: Ask, repo: str, branch: str, between: tuple[datetime, datetime], deadline: timedelta
) -> tuple[StartedRun, ...]:
    """The runs that a dispatch started on a branch in a span of time, oldest first, whoever sent it."""
    query: dict[str, str | int] = {
        "event": "workflow_dispatch",
        "branch": branch,
        "created": "..".join(_second(at) for at in between),
        "exclude_pull_requests": "true",
        "per_page": PER_PAGE,
    }
    call = Call("list_dispatched_runs", "GET", f"{repo_path(repo)}/actions/runs", query)
    found = [read_started_run(item) for item in await read_all(ask, call, "workflow_runs", deadline)]
    return tuple(sorted(found, key=lambda run: run.run_id))


def read_started_run(item: Item) -> StartedRun:
    """Read one run of an answer."""
    actor = item.optional_item("actor")
    return StartedRun(
        run_id=item.integer("id"),
        html_url=item.text("html_url"),
        workflow=item.optional_text("path") or "",
        workflow_id=item.integer("workflow_id"),
        actor=actor.text("login") if actor else None,
    )


def _text(value: Any) -> str:
    """An input as text, which every GitHub takes and reads as what its workflow declares; some take nothing else."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _second(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
