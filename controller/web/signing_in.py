"""Signing in and out: a form that takes the admin token and gives a cookie. The token itself is never kept."""

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from controller.web.addresses import encrypted
from controller.web.admin import COOKIE, WRONG, Admin, Refused, local_path, read_fields
from controller.web.query import LOGIN, BadQuery, refuse_unknown
from controller.web.rendering import SECURITY_HEADERS, Renderer, View
from controller.web.sessions import SESSION_LENGTH, clean_name

log = structlog.get_logger()

IMPOSSIBLE = "Nobody can sign in here: the operators have set no $SWITCHBOARD_ADMIN_TOKEN."


class SigningIn:
    """`/login` and `/logout`."""

    def __init__(self, admin: Admin, renderer: Renderer) -> None:
        self._admin = admin
        self._renderer = renderer

    def routes(self) -> list[Route]:
        """The addresses."""
        return [
            Route("/login", self.form, methods=["GET"]),
            Route("/login", self.sign_in, methods=["POST"]),
            Route("/logout", self.sign_out, methods=["POST"]),
        ]

    async def form(self, request: Request) -> Response:
        """The form; whoever is signed in goes on."""
        try:
            refuse_unknown(request.query_params, LOGIN)
        except BadQuery as error:
            return self._form(request, "/", str(error), 400)
        back = local_path(request.query_params.get("next", ""))
        if self._admin.csrf(request) is not None:
            return RedirectResponse(back, 303, SECURITY_HEADERS)
        return self._form(request, back, "" if self._admin.possible else IMPOSSIBLE, 200)

    async def sign_in(self, request: Request) -> Response:
        """Judge the token; the right one is exchanged for a cookie."""
        try:
            fields = await read_fields(request)
        except Refused as refused:
            return self._form(request, "/", str(refused), refused.status)
        back = local_path(str(fields.get("next") or ""))
        name = clean_name(str(fields.get("name") or ""))
        value = self._admin.open_session(name)
        if value is None:
            return self._form(request, back, IMPOSSIBLE, 403)
        if not self._admin.knows(str(fields.get("token") or "").strip()):
            log.warning("sign_in.refused", client=request.client.host if request.client else None)
            return self._form(request, back, WRONG, 403)
        log.info("sign_in.done", who=name)
        response = RedirectResponse(back, 303, SECURITY_HEADERS)
        response.set_cookie(
            COOKIE,
            value,
            max_age=int(SESSION_LENGTH.total_seconds()),
            path="/",
            secure=encrypted(request),
            httponly=True,
            samesite="strict",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """Drop the cookie; a form of another site cannot do so."""
        try:
            self._admin.check_csrf(request, await read_fields(request))
        except Refused as refused:
            return self._form(request, "/", str(refused), refused.status)
        response = RedirectResponse("/", 303, SECURITY_HEADERS)
        response.delete_cookie(COOKIE, path="/", secure=encrypted(request), httponly=True, samesite="strict")
        return response

    def _form(self, request: Request, back: str, mistake: str, status: int) -> Response:
        context = {"back": back, "mistake": mistake, "possible": self._admin.possible}
        return self._renderer.page(request, View("login.html", "Sign in", {}, context, status=status))
