"""The table of the JSON API; `openapi` describes every row of it."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.domain.holds import HoldScope
from controller.web.admin import Admin
from controller.web.controls import Controls, QueueControls
from controller.web.openapi import document
from controller.web.openapi_schemas import Json
from controller.web.query import NOTHING, BadQuery, refuse_unknown
from controller.web.queue import OtherRows, Queue
from controller.web.reader import PageDeps
from controller.web.rendering import Renderer, data_response
from controller.web.routes import Faces, error_view, writes
from controller.web.signing_in import SigningIn


def api_routes(
    deps: PageDeps, admin: Admin, controls: Controls, others: Mapping[str, OtherRows] | None = None
) -> list[Route]:
    """Reads for everyone, writes for the admin, and signing in."""
    faces, door = Faces(deps), writes(deps, admin)
    queue = Queue(deps, others or {})
    acts = QueueControls(controls, deps.settings, deps.clock)
    routes = [
        *SigningIn(admin, Renderer(deps)).routes(),
        Route("/api/openapi.json", openapi),
        Route("/queue", faces.page(queue.page)),
        Route("/queue.json", faces.twin(queue.page)),
        Route("/api/queue", faces.twin(queue.jobs)),
        Route("/api/queue/{job_id}", door.admin_only(acts.act), methods=["PATCH", "POST"]),
        Route("/api/queue/{job_id}", door.admin_only(acts.cancel), methods=["DELETE"]),
        Route("/api/jobs/{job_id}/explain", faces.twin(queue.explain)),
    ]
    for scope, plural, verb in HOLDABLE:
        place = f"/api/{plural}/{{name}}"
        routes.append(Route(f"{place}/{verb}", door.admin_only(acts.hold(scope)), methods=["POST"]))
        routes.append(Route(f"{place}/resume", door.admin_only(acts.resume(scope)), methods=["POST"]))
    return routes


HOLDABLE = (
    (HoldScope.POOL, "pools", "pause"),
    (HoldScope.ENTITY, "entities", "pause"),
    (HoldScope.BOARD, "boards", "drain"),
)


async def openapi(request: Request) -> Response:
    """What can be asked here."""
    return described(request, document())


def described(request: Request, content: Json) -> Response:
    """The document, which takes no parameters."""
    try:
        refuse_unknown(request.query_params, NOTHING)
    except BadQuery as error:
        return data_response(error_view(400, "That cannot be shown", str(error)).data, 400)
    return data_response(content)
