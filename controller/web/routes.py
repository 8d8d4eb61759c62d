"""The table of what is served: every page, its twin, the probes, the search field and the assets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, assert_never
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from controller.errors import StoreError, StoreUnavailable
from controller.web.admin import Admin, Refused, Writes
from controller.web.alarms import Alarm, find_alarm
from controller.web.pages import NotThere, Pages
from controller.web.query import SEARCH, BadQuery, refuse_unknown
from controller.web.reader import PageDeps
from controller.web.rendering import HERE, SECURITY_HEADERS, Assets, Renderer, View
from controller.web.search import (
    JobId,
    Nothing,
    Owner,
    RunId,
    RunnerName,
    SomeId,
    Sought,
    job_path,
    owner_path,
    read_search,
    run_path,
    worker_path,
)
from controller.web.status import StatusPages

Endpoint = Callable[[Request], Awaitable[Response]]
MakeView = Callable[[Request], Awaitable[View]]

NOT_A_PAGE = "There is no page at this address. The navigation above lists those there are."
NOT_A_TWIN = (
    "There is nothing at this address. Pages: /overview /usage /jobs /history /queue /workers /boards /schedules, "
    "each also with .json."
)


def writes(deps: PageDeps, admin: Admin) -> Writes:
    """The door for handlers that write; a refused form is answered with a page."""
    return Writes(admin, Faces(deps).refused_form)


def page_routes(deps: PageDeps) -> list[Route | Mount]:
    """All routes of the pages; none of them writes."""
    pages, faces = Pages(deps), Faces(deps)
    return [
        *StatusPages(deps.status, deps.clock, deps.render_metrics).routes(),
        Route("/", faces.page(pages.overview)),
        Route("/overview", faces.page(pages.overview)),
        Route("/overview.json", faces.twin(pages.overview)),
        Route("/usage", faces.page(pages.usage)),
        Route("/usage.json", faces.twin(pages.usage)),
        Route("/history", faces.page(pages.history)),
        Route("/history.json", faces.twin(pages.history)),
        Route("/jobs", faces.page(pages.history)),
        Route("/jobs.json", faces.twin(pages.history)),
        Route("/jobs/{job_id}.json", faces.twin(pages.job)),
        Route("/jobs/{job_id}", faces.page(pages.job)),
        Route("/workers", faces.page(pages.workers)),
        Route("/workers.json", faces.twin(pages.workers)),
        Route("/workers/{name}.json", faces.twin(pages.worker)),
        Route("/workers/{name}", faces.page(pages.worker)),
        Route("/boards", faces.page(pages.boards)),
        Route("/boards.json", faces.twin(pages.boards)),
        Route("/search", faces.search),
        Mount("/static", Assets(directory=HERE / "static")),
    ]


def site(routes: Sequence[BaseRoute], handlers: Mapping[Any, Any]) -> Starlette:
    """The application; a slash too many is answered by `Faces.refused`, with our headers."""
    application = Starlette(routes=routes, exception_handlers=dict(handlers))
    application.router.redirect_slashes = False
    return application


def error_handlers(deps: PageDeps) -> Mapping[Any, Callable[[Request, Any], Awaitable[Response]]]:
    """For the application: unknown addresses, wrong methods and mistakes of ours, as page or JSON by suffix."""
    faces = Faces(deps)
    return {HTTPException: faces.refused, Exception: faces.broken}


class Faces:
    """The two faces of a view, and of what goes wrong on the way to it."""

    def __init__(self, deps: PageDeps) -> None:
        self._deps = deps
        self._renderer = Renderer(deps)

    def page(self, make: MakeView) -> Endpoint:
        """The view as HTML."""

        async def answer(request: Request) -> Response:
            view = await self._view(make, request)
            alarm = None if self._deps.closed_to(request) else await self._alarm()
            return self._for_reader(request, self._renderer.page(request, view, alarm))

        return answer

    async def _alarm(self) -> Alarm | None:
        """Another process's state is asked of the database; where that is away, the page says so anyway."""
        loop, now = self._deps.status.snapshot(), self._deps.clock.now()
        try:
            return find_alarm(loop, None if loop.leads else await self._deps.store.leader(), now)
        except StoreError:
            return None

    def twin(self, make: MakeView) -> Endpoint:
        """The view as JSON."""

        async def answer(request: Request) -> Response:
            return self._for_reader(request, self._renderer.twin(request, await self._view(make, request)))

        return answer

    def _for_reader(self, request: Request, response: Response) -> Response:
        """What somebody who is signed in reads stays in no cache, not even the browser's own."""
        if self._deps.visitors.reader(request) is not None:
            response.headers["Cache-Control"] = "no-store"
        return response

    async def _view(self, make: MakeView, request: Request) -> View:
        if self._deps.closed_to(request):
            return closed_view(request)
        try:
            return await make(request)
        except BadQuery as error:
            return error_view(400, "That cannot be shown", str(error))
        except NotThere as error:
            return error_view(404, "Not found", str(error))
        except StoreUnavailable:
            return error_view(
                503, "The database does not answer", "Nothing is lost; this page tries again by itself."
            )
        except StoreError:
            return error_view(
                500, "The database refused the question", "The operators find the reason in the log."
            )

    async def search(self, request: Request) -> Response:
        """Go to what was pasted into the search field."""
        if self._deps.closed_to(request):
            return self._renderer.page(request, closed_view(request))
        try:
            refuse_unknown(request.query_params, SEARCH)
        except BadQuery as error:
            return self._renderer.page(request, error_view(400, "That cannot be shown", str(error)))
        text = request.query_params.get("q", "")
        sought = read_search(text, self._deps.settings.names.stem)
        try:
            place = await self._place(sought, self._deps.visitors.reader(request) is not None)
        except StoreError:
            view = error_view(
                503, "The database does not answer", "Nothing is lost; search again in a moment."
            )
            return self._renderer.page(request, view)
        if place is not None:
            return RedirectResponse(place, 303, SECURITY_HEADERS)
        advice = (
            "Paste a job id, the name of a runner, a GitHub login, or the address of a job or run on GitHub."
        )
        return self._renderer.page(request, error_view(404, "Nothing found", advice))

    async def _place(self, sought: Sought, sees_private: bool) -> str | None:
        match sought:
            case JobId(number):
                return job_path(number)
            case RunId(number):
                return run_path(number)
            case SomeId(number):
                as_job, as_run = await self._deps.store.knows(number, sees_private=sees_private)
                return run_path(number) if as_run and not as_job else job_path(number)
            case RunnerName(name):
                return worker_path(name)
            case Owner(login):
                return owner_path(login)
            case Nothing():
                return None
            case _:
                assert_never(sought)

    async def refused(self, request: Request, error: HTTPException) -> Response:
        """An address or method that is not served."""
        if error.status_code == 404 and request.method in ("GET", "HEAD") and request.url.path.endswith("/"):
            return RedirectResponse(_without_slash(request), 307, SECURITY_HEADERS)
        if error.status_code == 404:
            view = error_view(404, "Not found", NOT_A_TWIN if _wants_data(request) else NOT_A_PAGE)
        else:
            view = error_view(error.status_code, "Not possible", f"{error.detail}.")
        response = self._either(request, view)
        response.headers.update(error.headers or {})
        return response

    def refused_form(self, request: Request, refused: Refused, back: str) -> Response:
        """A form that was not carried out, and the way back to its page."""
        way = (back, f"Go back to {back.partition('?')[0]}") if back != "/" else None
        return self._renderer.page(request, error_view(refused.status, refused.title, str(refused), way))

    async def broken(self, request: Request, error: Exception) -> Response:
        """A mistake of ours; what it was stands in the log, not here."""
        return self._either(
            request, error_view(500, "Something broke", "The operators find the reason in the log.")
        )

    def _either(self, request: Request, view: View) -> Response:
        return (
            self._renderer.twin(request, view) if _wants_data(request) else self._renderer.page(request, view)
        )


def error_view(status: int, title: str, sentence: str, way: tuple[str, str] | None = None) -> View:
    """A refusal in words, and the way on: an address and what it is called."""
    context = {"sentence": sentence, "way": way, "code": status}
    return View("error.html", title, {"error": title, "message": sentence}, context, status=status)


def closed_view(request: Request) -> View:
    """What those who are not signed in get of every page when `web.private` is set."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    sentence = (
        "These pages are private. Sign in with the token of the operators; programs send "
        "`Authorization: Bearer $SWITCHBOARD_ADMIN_TOKEN`."
    )
    return error_view(401, "Sign in first", sentence, (f"/login?next={quote(path, safe='')}", "Sign in"))


def _without_slash(request: Request) -> str:
    """The same address without the slash at its end; it stays within the site, whatever it begins with."""
    query = f"?{request.url.query}" if request.url.query else ""
    return "/" + quote(request.url.path.strip("/"), safe="/%") + query


def _wants_data(request: Request) -> bool:
    return request.url.path.endswith(".json") or request.url.path.startswith(("/api/", "/webhook"))
