"""Who may write, and how a write is asked for: the one door that every write of the API goes through.

    request ─▶ who (401, 403) ─▶ body (400, 413) ─▶ CSRF for cookies (403) ─▶ the handler ─▶ JSON, or back to the page

A handler is given who asks and the fields of the body. It serves programs (Bearer token, JSON) and the forms of the
pages (cookie, form fields, CSRF token) alike. Nothing here writes by itself.
"""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from controller.errors import StoreError, StoreUnavailable, clip
from controller.ports import Clock, Secret
from controller.web.rendering import SECURITY_HEADERS, data_response
from controller.web.sessions import Sessions, clean_name

COOKIE = "switchboard_session"
CSRF_FIELD, BACK_FIELD = "csrf", "back"
CSRF_HEADER = "X-CSRF-Token"
NAME_HEADER = "X-Requested-By"  # who uses the token: it is one for all
BODY_LIMIT = 64 * 1024
BODY_DEADLINE = timedelta(seconds=10)
WRONG = "That is not the admin token."
FORM = "application/x-www-form-urlencoded"

Fields = Mapping[str, Any]
Model = TypeVar("Model", bound=BaseModel)


class Refused(Exception):
    """A request that is not carried out; the message is a sentence for whoever asked."""

    def __init__(self, status: int, sentence: str, title: str = "Not done") -> None:
        super().__init__(sentence)
        self.status = status
        self.title = title


@dataclass(frozen=True, slots=True)
class Done:
    """What a write answers programs with; a form goes back to its page instead."""

    data: Any
    status: int = 200


Write = Callable[[Request, str, Fields], Awaitable[Done]]
Endpoint = Callable[[Request], Awaitable[Response]]


class Admin:
    """Knows the admin token; without one nobody is ever signed in and nothing is ever written."""

    def __init__(self, token: Secret | None, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._sessions = Sessions(token) if token is not None else None

    @property
    def possible(self) -> bool:
        """Whether anyone can sign in at all."""
        return self._token is not None

    def reader(self, request: Request) -> str | None:
        """The name of whoever is signed in, by token or by cookie; None for everybody else."""
        claimed = _bearer(request)
        if claimed is not None:
            return _named(request) if self.knows(claimed) else None
        return self._in_session(request)

    def csrf(self, request: Request) -> str | None:
        """What forms for this reader must carry; None without a session."""
        if self._sessions is None or self._in_session(request) is None:
            return None
        return self._sessions.csrf(request.cookies[COOKIE])

    def knows(self, claimed: str) -> bool:
        """Whether this is the token; takes equally long for every wrong one.

        Nobody is locked out for the mistakes of others: behind a proxy all come from one address. What keeps the
        token from being guessed is its length, and the doctor says when it is short.
        """
        if self._token is None:
            return False
        return hmac.compare_digest(claimed.encode(errors="replace"), self._token.reveal().encode())

    def open_session(self, name: str) -> str | None:
        """The value of a new session's cookie."""
        return self._sessions.open(name, self._clock.now()) if self._sessions else None

    def allow(self, request: Request) -> str:
        """Who asks for a write; Refused unless that is somebody who may."""
        if self._token is None:
            raise Refused(
                403, "Nothing can be written here: the operators have set no $SWITCHBOARD_ADMIN_TOKEN."
            )
        claimed = _bearer(request)
        if claimed is not None and not self.knows(claimed):
            raise Refused(403, WRONG)
        who = self.reader(request)
        if who is None:
            raise Refused(401, "Send `Authorization: Bearer $SWITCHBOARD_ADMIN_TOKEN`, or sign in at /login.")
        return who

    def check_csrf(self, request: Request, fields: Fields) -> None:
        """Refused if a cookie speaks for the request and its form is not one of ours."""
        if _bearer(request) is not None:
            return
        given = request.headers.get(CSRF_HEADER) or str(fields.get(CSRF_FIELD) or "")
        wanted = self.csrf(request) or ""
        if not wanted or not hmac.compare_digest(given.encode(errors="replace"), wanted.encode()):
            raise Refused(403, "The form is not one of this session. Load the page again and repeat it.")

    def _in_session(self, request: Request) -> str | None:
        value = request.cookies.get(COOKIE)
        if self._sessions is None or value is None:
            return None
        return self._sessions.name_of(value, self._clock.now())


class Writes:
    """Turns handlers into endpoints that only an admin gets through to."""

    def __init__(self, admin: Admin, show: Callable[[Request, Refused, str], Response]) -> None:
        self._admin = admin
        self._show = show  # a refusal as a page, for forms, and the way back to theirs

    def admin_only(self, write: Write) -> Endpoint:
        """The endpoint of a write: JSON for programs, back to the page for forms."""

        async def answer(request: Request) -> Response:
            from_form, back = _is_form(request), "/"
            try:
                who = self._admin.allow(request)
                fields = await read_fields(request)
                back = local_path(str(fields.get(BACK_FIELD) or ""))
                self._admin.check_csrf(request, fields)
                own = {n: v for n, v in fields.items() if n not in (CSRF_FIELD, BACK_FIELD)}
                done = await _carried_out(write, request, who, own)
            except Refused as refused:
                as_page = from_form and _reads_pages(request)
                return self._show(request, refused, back) if as_page else refusal(refused)
            if from_form:
                return RedirectResponse(back, 303, SECURITY_HEADERS)
            return data_response(done.data, done.status)

        return answer


async def _carried_out(write: Write, request: Request, who: str, fields: Fields) -> Done:
    try:
        return await write(request, who, fields)
    except StoreUnavailable as error:
        sentence = "The database does not answer; whether it was done shows once it does."
        raise Refused(503, sentence) from error
    except StoreError as error:
        raise Refused(500, "The database refused it; the operators find the reason in the log.") from error


async def read_fields(request: Request) -> dict[str, Any]:
    """The fields of a JSON object or of a form; no body means no fields."""
    body = await _read_body(request)
    if _is_form(request):
        return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
    if not body.strip():
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "The body must be a JSON object.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The body must be a JSON object.")
    return found


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_DEADLINE.total_seconds()):
            async for piece in request.stream():
                body += piece
                if len(body) > BODY_LIMIT:
                    raise Refused(413, f"The body is longer than {BODY_LIMIT} bytes.")
    except TimeoutError:
        raise Refused(408, "The body took too long.") from None
    except ClientDisconnect:
        raise Refused(400, "The connection was closed.") from None
    return bytes(body)


def checked(model: type[Model], fields: Fields) -> Model:
    """The fields as an API body; Refused names every mistake at once."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        mistakes = [_mistake(item["loc"], item["type"], item["msg"]) for item in error.errors()]
        raise Refused(400, "; ".join(mistakes) + ".") from None


def _mistake(place: tuple[int | str, ...], kind: str, message: str) -> str:
    key = clip(".".join(map(str, place)), 100) or "body"
    if kind == "extra_forbidden":
        return f"{key}: unknown field"
    if kind == "missing":
        return f"{key}: missing"
    return f"{key}: {clip(message.removeprefix('Value error, '), 200).rstrip('.')}"


def local_path(text: str, default: str = "/") -> str:
    """A path on this server, whatever was given: nobody is sent elsewhere after signing in or writing."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return default
    plain = text.isascii() and text.isprintable() and "\\" not in text
    if not plain or parts.scheme or parts.netloc or not text.startswith("/") or text.startswith("//"):
        return default
    return text


def refusal(refused: Refused) -> Response:
    """A refusal as JSON."""
    headers = {"WWW-Authenticate": 'Bearer realm="switchboard"'} if refused.status == 401 else {}
    return data_response({"error": refused.title, "message": str(refused)}, refused.status, headers)


def _bearer(request: Request) -> str | None:
    """The token that a request carries, if it carries one; other schemes carry none."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


def _named(request: Request) -> str:
    return clean_name(request.headers.get(NAME_HEADER, ""))


def _reads_pages(request: Request) -> bool:
    """Whether a browser asks; `curl -d` without a token sends what looks like a form, and reads JSON."""
    return "text/html" in request.headers.get("Accept", "")


def _is_form(request: Request) -> bool:
    """Whether a page's form was sent; a token means a program, and `curl -d` calls everything a form."""
    if _bearer(request) is not None:
        return False
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower() == FORM
