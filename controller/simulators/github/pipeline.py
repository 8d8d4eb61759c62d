"""The way of one REST request: fault, credential, limits, handler, ETag, validation, log.

A handler never awaits, so that its effect is whole or not there at all, whatever a fault does to the answer.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from email.utils import format_datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from controller.simulators.github.auth import Caller
from controller.simulators.github.errors import ApiError
from controller.simulators.github.faults import Rule
from controller.simulators.github.limits import who_is
from controller.simulators.github.operations import Answer, Call, Operation
from controller.simulators.github.platform import Platform
from controller.simulators.github.request_log import SeenRequest
from controller.simulators.github.state import Json

API_VERSIONS = (None, "2022-11-28", "2026-03-10")
CUT = 0  # the status of a request whose connection was cut

Endpoint = Callable[[Request], Awaitable[Response]]


class CutConnection(Response):
    """Promise a byte and never send it: the server then closes the connection under the client."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the headers only."""
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]},
        )


def endpoint(github: Platform, operation: Operation) -> Endpoint:
    """The Starlette endpoint of an operation."""

    async def answer_request(request: Request) -> Response:
        return await _Exchange(github, operation, request).run()

    return answer_request


class _Exchange:
    """One request on its way; the caller may stay unknown, as with a bad credential."""

    def __init__(self, github: Platform, operation: Operation, request: Request) -> None:
        self._github = github
        self._operation = operation
        self._request = request
        self._caller: Caller | None = None
        self._refusal: ApiError | None = None
        self._sent: object = None

    async def run(self) -> Response:
        """Answer, with the request counted as in flight meanwhile."""
        raw = await self._request.body()
        self._identify()
        if self._caller is None:
            return await self._with_faults(raw)
        who = who_is(self._caller)
        self._github.limits.in_flight[who] += 1
        try:
            return await self._with_faults(raw)
        finally:
            self._github.limits.in_flight[who] -= 1

    def _identify(self) -> None:
        try:
            self._caller = self._github.auth.identify(self._request.headers.get("authorization"))
        except ApiError as error:
            self._refusal = error

    async def _with_faults(self, raw: bytes) -> Response:
        installation = self._caller.installation if self._caller else None
        rule = self._github.faults.pick(
            self._operation.id, self._request.url.path, installation.id if installation else None
        )
        if rule is None:
            return self._respond(self._handle(raw))
        if rule.delay:
            await self._github.clock.sleep(rule.delay)
        if rule.drop == "before" or (rule.hold == "before" and not await rule.keep()):
            return self._cut()
        if rule.status is not None and not rule.apply:
            return self._respond(_spoiled(rule, rule.status))
        answer = self._handle(raw)
        if rule.drop == "after" or (rule.hold == "after" and not await rule.keep()):
            return self._cut()
        return self._respond(answer if rule.status is None else _spoiled(rule, rule.status))

    def _handle(self, raw: bytes) -> Answer:
        try:
            return self._admitted(raw)
        except ApiError as error:
            return Answer(error.status, error.body, error.headers)

    def _admitted(self, raw: bytes) -> Answer:
        headers = self._request.headers
        if not headers.get("user-agent"):
            raise ApiError(403, "Request forbidden by administrative rules.")
        if headers.get("x-github-api-version") not in API_VERSIONS:
            raise ApiError(400, "Bad Request: unsupported API version")
        if self._caller is None:
            raise self._refusal or ApiError(401, "Requires authentication")
        self._operation.admit(self._caller)
        self._github.limits.check(self._caller, self._operation.id, self._operation.method)
        call = Call(
            github=self._github,
            caller=self._caller,
            method=self._operation.method,
            path=self._request.url.path,
            params=dict(self._request.path_params),
            query=dict(self._request.query_params),
            headers=headers,
            body=self._read(raw),
        )
        return self._operation.handler(call)

    def _read(self, raw: bytes) -> Json:
        if not raw:
            return {}
        try:
            self._sent = json.loads(raw)
        except ValueError as error:
            raise ApiError(400, "Problems parsing JSON") from error
        if not isinstance(self._sent, dict):
            raise ApiError(400, "Body should be a JSON object")
        return self._sent

    def _respond(self, answer: Answer) -> Response:
        github = self._github
        content = b"" if answer.body is None else json.dumps(answer.body, separators=(",", ":")).encode()
        status, headers = answer.status, dict(answer.headers)
        headers["x-github-request-id"] = f"{github.rng.getrandbits(64):016X}"
        headers["date"] = format_datetime(github.now(), usegmt=True)
        headers["x-github-media-type"] = "github.v3; format=json"
        if self._operation.method == "GET" and status == 200:
            headers["etag"] = self._etag(content)
            headers["cache-control"] = "private, max-age=60, s-maxage=60"
            headers["vary"] = "Accept, Authorization, Cookie, X-GitHub-OTP"
            if self._request.headers.get("if-none-match") == headers["etag"]:
                status, content = 304, b""
        github.check_answer(
            self._operation.method,
            self._operation.template,
            status,
            self._sent,
            None if status == 304 else answer.body,
        )
        if self._caller is not None:
            github.limits.count(self._caller, self._operation.id, status)
            headers = github.limits.headers(self._caller) | headers
        self._log(status)
        media = "application/json; charset=utf-8" if content else None
        return Response(content, status_code=status, headers=headers, media_type=media)

    def _etag(self, content: bytes) -> str:
        """GitHub's ETags depend on the token: the same answer to another token has another one."""
        headers = self._request.headers
        parts = (headers.get("accept", ""), headers.get("authorization", ""), headers.get("cookie", ""))
        digest = hashlib.sha256("\0".join(parts).encode() + b"\0" + content)
        return f'W/"{digest.hexdigest()}"'

    def _cut(self) -> Response:
        self._log(CUT)
        return CutConnection()

    def _log(self, status: int) -> None:
        installation = self._caller.installation if self._caller else None
        self._github.requests.append(
            SeenRequest(
                at=self._github.now(),
                method=self._operation.method,
                path=self._request.url.path,
                query=self._request.url.query,
                operation=self._operation.id,
                app_id=self._caller.app.id if self._caller else None,
                installation_id=installation.id if installation else None,
                status=status,
            )
        )


def _spoiled(rule: Rule, status: int) -> Answer:
    body = rule.body if rule.body is not None else ApiError(status, "Server Error").body
    return Answer(status, None if status == 204 else body, rule.headers)
