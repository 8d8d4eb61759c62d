"""The simulator's remote control: what `scenario` can do, for a test in another process.

POST /_sim/{command}    a JSON object of the command's arguments; durations are in seconds
GET  /_sim/ledger | requests | deliveries | violations
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from controller.simulators.github.payloads import webhooks
from controller.simulators.github.scenario import Scenario
from controller.simulators.github.state import JobSpec, Json, Run
from controller.simulators.github.webhook_faults import WebhookRule

Command = Callable[[Scenario, "Arguments"], object]  # JSON, or None
T = TypeVar("T")


class Arguments:
    """The JSON object of a command, read with types."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.values = dict(values)

    def of(self, name: str, kind: type[T]) -> T:
        """A required argument."""
        value = self.values.get(name)
        if not isinstance(value, kind):
            raise ValueError(f"{name}: expected {kind.__name__}, got {value!r}")
        return value

    def text(self, name: str) -> str:
        """A required text."""
        return self.of(name, str)

    def number(self, name: str) -> int:
        """A required number."""
        return self.of(name, int)

    def seconds(self, name: str) -> timedelta:
        """A required duration."""
        value = self.values.get(name)
        if not isinstance(value, int | float):
            raise ValueError(f"{name}: expected seconds, got {value!r}")
        return timedelta(seconds=value)

    def flag(self, name: str) -> bool:
        """A flag, false if left out."""
        return bool(self.values.get(name, False))

    def jobs(self) -> list[JobSpec]:
        """The job specifications of a run or workflow."""
        specs = []
        for each in self.of("jobs", list):
            if not isinstance(each, dict):
                raise ValueError("jobs: expected objects")
            specs.append(JobSpec(**each))
        return specs


def _run(run: Run) -> Json:
    return {"run_id": run.id, "job_ids": [job.id for job in run.jobs]}


def _queue_run(sim: Scenario, args: Arguments) -> Json:
    event, branch = str(args.values.get("event", "push")), str(args.values.get("branch", "main"))
    return _run(sim.queue_run(args.text("repository"), args.jobs(), event=event, branch=branch))


def _add_workflow(sim: Scenario, args: Arguments) -> Json:
    sim.add_workflow(args.text("repository"), args.text("file"), args.jobs())
    return {}


def _add_account(kind: str) -> Command:
    def add(sim: Scenario, args: Arguments) -> Json:
        make = sim.add_organization if kind == "Organization" else sim.add_user
        account = make(args.text("login"), args.text("app_id"))
        return {"id": account.id, "installation_id": account.installation.id}

    return add


def _add_repository(sim: Scenario, args: Arguments) -> Json:
    return {"id": sim.add_repository(args.text("repository"), args.flag("private")).id}


def _rerun_failed(sim: Scenario, args: Arguments) -> Json:
    return {"job_ids": [job.id for job in sim.rerun_failed(args.number("run_id"))]}


def _add_fault(sim: Scenario, args: Arguments) -> Json:
    return {"name": sim.faults.add(**args.values).name}


def _fault_state(sim: Scenario, args: Arguments) -> Json:
    rule = sim.faults.rules[args.text("name")]
    return {"hits": rule.hits, "held": rule.held}


def _add_webhook_fault(sim: Scenario, args: Arguments) -> Json:
    values = dict(args.values)
    if "delay" in values:
        values["delay"] = args.seconds("delay")
    sim.faults.webhooks.rules.append(WebhookRule(**values))  # type: ignore[arg-type]
    return {}


def _reinstall(sim: Scenario, args: Arguments) -> Json:
    return {"installation_id": sim.reinstall(args.text("login")).id}


def _set_webhook_url(sim: Scenario, args: Arguments) -> Json:
    url = args.values.get("url")
    sim.webhook_url = None if url is None else str(url)
    return {}


def _refuse_versions(sim: Scenario, args: Arguments) -> Json:
    below = args.values.get("below")
    sim.refuse_runner_versions(args.text("login"), None if below is None else str(below))
    return {}


def _set(target: Callable[[Scenario], object]) -> Command:
    """Change fields of a settings object; numbers become durations where the field is one."""

    def change(sim: Scenario, args: Arguments) -> Json:
        settings = target(sim)
        for name, value in args.values.items():
            if not hasattr(settings, name) or name.startswith("_"):
                raise ValueError(f"{name}: unknown setting")
            duration = isinstance(getattr(settings, name), timedelta) or name == "remove_idle_after"
            setattr(settings, name, args.seconds(name) if duration and value is not None else value)
        return {}

    return change


COMMANDS: dict[str, Command] = {
    "add_organization": _add_account("Organization"),
    "add_user": _add_account("User"),
    "add_repository": _add_repository,
    "add_workflow": _add_workflow,
    "queue_run": _queue_run,
    "rerun_failed": _rerun_failed,
    "cancel_job": lambda sim, args: sim.cancel_job(args.number("job_id")),
    "cancel_run": lambda sim, args: sim.cancel_run(args.number("run_id")),
    "approve": lambda sim, args: sim.approve(args.number("job_id")),
    "end_run": lambda sim, args: sim.end_run(args.number("run_id"), args.text("conclusion")),
    "hide_job": lambda sim, args: sim.hide_job(
        args.number("job_id"), args.seconds("seconds"), in_list=args.flag("in_list")
    ),
    "remove_runner": lambda sim, args: sim.remove_runner(args.text("name")),
    "rename_account": lambda sim, args: sim.rename_account(args.text("login"), args.text("new")),
    "rename_repository": lambda sim, args: sim.rename_repository(args.text("repository"), args.text("name")),
    "refuse_runner_versions": _refuse_versions,
    "suspend": lambda sim, args: sim.suspend(args.text("login")),
    "unsuspend": lambda sim, args: sim.unsuspend(args.text("login")),
    "uninstall": lambda sim, args: sim.uninstall(args.text("login")),
    "reinstall": _reinstall,
    "revoke_tokens": lambda sim, args: sim.revoke_tokens(args.text("login")),
    "ping": lambda sim, args: sim.ping(sim.world.apps[int(args.text("app_id"))]),
    "webhook_url": _set_webhook_url,
    "behaviour": _set(lambda sim: sim.behaviour),
    "limits": _set(lambda sim: sim.limits),
    "exhaust": lambda sim, args: sim.limits.exhaust(args.number("installation_id")),
    "trip_secondary": lambda sim, args: sim.limits.trip_secondary(
        args.number("installation_id"), args.seconds("seconds")
    ),
    "faults": _add_fault,
    "faults/state": _fault_state,
    "faults/remove": lambda sim, args: sim.faults.remove(args.text("name")),
    "faults/release": lambda sim, args: sim.faults.release(args.text("name"), drop=args.flag("drop")),
    "faults/clear": lambda sim, args: sim.faults.clear(),
    "webhook_faults": _set(lambda sim: sim.faults.webhooks),
    "webhook_faults/rule": _add_webhook_fault,
}


class Control:
    """The endpoints under /_sim/."""

    def __init__(self, sim: Scenario) -> None:
        self._sim = sim

    def routes(self) -> list[Route]:
        """For the simulator's app."""
        return [
            Route("/_sim/ledger", self._ledger, methods=["GET"]),
            Route("/_sim/requests", self._requests, methods=["GET"]),
            Route("/_sim/deliveries", self._deliveries, methods=["GET"]),
            Route("/_sim/violations", self._violations, methods=["GET"]),
            Route("/_sim/{command:path}", self._command, methods=["POST"]),
        ]

    async def _command(self, request: Request) -> Response:
        command = COMMANDS.get(request.path_params["command"])
        if command is None:
            return JSONResponse({"message": "unknown command", "commands": sorted(COMMANDS)}, 404)
        try:
            values = await request.json() if await request.body() else {}
            answer = command(self._sim, Arguments(values))
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"message": f"{type(error).__name__}: {error}"}, 400)
        return JSONResponse({} if answer is None else answer)

    async def _ledger(self, request: Request) -> Response:
        return JSONResponse(self._sim.ledger.as_json())

    async def _requests(self, request: Request) -> Response:
        seen = [asdict(each) | {"at": each.at.isoformat()} for each in self._sim.requests]
        return JSONResponse({"requests": seen})

    async def _deliveries(self, request: Request) -> Response:
        items = self._sim.world.deliveries.values()
        return JSONResponse({"deliveries": [webhooks.delivery_item(item) for item in items]})

    async def _violations(self, request: Request) -> Response:
        return JSONResponse({"violations": self._sim.violations})
