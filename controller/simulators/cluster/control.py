"""The cluster's remote control, for a test in another process; everything else goes on to the API.

POST /_sim/{command}    a JSON object of the command's arguments; durations are in seconds
GET  /_sim/requests | pods | nodes
"""

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from controller.simulators.cluster.objects import Json
from controller.simulators.cluster.programs import Behaviour
from controller.simulators.github.control import Arguments

if TYPE_CHECKING:
    from controller.simulators.cluster.simulator import ClusterSimulator

PREFIX = "/_sim/"
Command = Callable[["ClusterSimulator", Arguments], Json | None]


def _add_board(sim: "ClusterSimulator", args: Arguments) -> None:
    taints = args.values.get("taints", [])
    if not isinstance(taints, list):
        raise ValueError("taints: expected a list")
    slots = args.number("slots") if "slots" in args.values else 1
    sim.add_board(args.text("name"), args.of("labels", dict), slots, taints)


def _set_behaviour(sim: "ClusterSimulator", args: Arguments) -> None:
    durations = {"pull_time", "start_time", "stop_time"}
    known = {each.name for each in fields(Behaviour)}
    given = {name: value for name, value in args.values.items() if name != "name"}
    unknown = given.keys() - known
    if unknown:
        raise ValueError(f"unknown behaviour: {', '.join(sorted(unknown))}")
    for name in given.keys() & durations:
        given[name] = args.seconds(name)
    sim.set_board_behaviour(args.text("name"), Behaviour(**given))  # type: ignore[arg-type]


def _add_fault(sim: "ClusterSimulator", args: Arguments) -> Json:
    return {"name": sim.faults.add(**args.values).name}


def _fault_state(sim: "ClusterSimulator", args: Arguments) -> Json:
    rule = sim.faults.rules[args.text("name")]
    return {"hits": rule.hits, "held": rule.held}


COMMANDS: dict[str, Command] = {
    "add_namespace": lambda sim, args: sim.add_namespace(args.text("name")),
    "add_board": _add_board,
    "remove_board": lambda sim, args: sim.remove_board(args.text("name")),
    "cordon": lambda sim, args: sim.cordon(args.text("name")),
    "uncordon": lambda sim, args: sim.uncordon(args.text("name")),
    "kill_kubelet": lambda sim, args: sim.kill_kubelet(args.text("name")),
    "cut_power": lambda sim, args: sim.cut_power(args.text("name")),
    "revive_kubelet": lambda sim, args: sim.revive_kubelet(args.text("name")),
    "behaviour": _set_behaviour,
    "drop_watches": lambda sim, args: sim.drop_watches(),
    "send_bookmarks": lambda sim, args: sim.send_bookmarks(),
    "compact": lambda sim, args: sim.compact(),
    "faults": _add_fault,
    "faults/state": _fault_state,
    "faults/remove": lambda sim, args: sim.faults.remove(args.text("name")),
    "faults/release": lambda sim, args: sim.faults.release(args.text("name"), drop=args.flag("drop")),
    "faults/clear": lambda sim, args: sim.faults.clear(),
}


class Control:
    """The whole app: commands under /_sim/, and the API."""

    def __init__(self, sim: "ClusterSimulator", api: ASGIApp) -> None:
        self._sim = sim
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and the server's start and end."""
        if scope["type"] == "lifespan":
            await _live_and_die(receive, send)
        elif scope["path"].startswith(PREFIX):
            response = await self._command(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._api(scope, receive, send)

    async def _command(self, request: Request) -> Response:
        name = request.url.path.removeprefix(PREFIX)
        if request.method == "GET":
            return self._show(name)
        command = COMMANDS.get(name)
        if command is None:
            return JSONResponse({"message": "unknown command", "commands": sorted(COMMANDS)}, 404)
        try:
            values = await request.json() if await request.body() else {}
            answer = command(self._sim, Arguments(values))
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"message": f"{type(error).__name__}: {error}"}, 400)
        return JSONResponse(answer or {})

    def _show(self, name: str) -> Response:
        match name:
            case "requests":
                seen = [asdict(each) | {"at": each.at.isoformat()} for each in self._sim.requests]
                return JSONResponse({"requests": seen})
            case "pods":
                return JSONResponse({"pods": self._sim.pods()})
            case "nodes":
                return JSONResponse({"nodes": self._sim.nodes()})
            case _:
                return JSONResponse({"message": "unknown", "views": ["nodes", "pods", "requests"]}, 404)


async def _live_and_die(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
