"""The HTTP side: an ASGI app that answers as kube-apiserver does.

    request ─▶ fault ─▶ token ─▶ requests.read_path ─▶ reads | writes | watching | logs ─▶ log of requests

A bare ASGI callable, because a burst of a thousand pods goes through here. `/_sim/` is `control`.
"""

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from controller.ports import Clock
from controller.simulators.cluster.access import Account
from controller.simulators.cluster.discovery import STATIC, review
from controller.simulators.cluster.objects import PODS, Json, uid_of, with_kind
from controller.simulators.cluster.reads import get, list_page, selected, shown_as
from controller.simulators.cluster.requests import Ask, RequestLog, SeenRequest, read_path
from controller.simulators.cluster.status import ApiError, no_such_path, unauthorized
from controller.simulators.cluster.store import Change, Store
from controller.simulators.cluster.watching import Watch
from controller.simulators.cluster.writes import Writes
from controller.simulators.github.faults import Faults, Rule

CUT = 0  # the status of a request whose connection was cut
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
}
REASONS |= {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}

ReadLog = Callable[[Ask], str | None]


class Api:
    """The API server: answers requests, keeps their log and the open watches."""

    def __init__(
        self, store: Store, writes: Writes, clock: Clock, rng: random.Random, token: str, read_log: ReadLog
    ) -> None:
        self._store = store
        self._writes = writes
        self._clock = clock
        self.accounts = {token: Account("admin")}
        self._read_log = read_log
        self._watches: set[Watch] = set()
        self.faults = Faults(rng)
        self.requests = RequestLog()
        store.listeners.append(self._notice)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            ask, operation = self._understand(request)
            if ask is not None:
                ask = replace(ask, body=await request.body())
        except ApiError as error:
            self._log(request, "", error.code)
            await _refuse(error)(scope, receive, send)
            return
        rule = self.faults.pick(operation, scope["path"], None)
        if ask is not None and ask.verb == "watch":
            await self._watch(request, ask, rule, send)
            return
        response = await self._answer(request, ask, operation, rule)
        if response is None:
            self._log(request, operation, CUT)
            await _cut(send)
            return
        self._log(request, operation, response.status_code)
        await response(scope, receive, send)

    def drop_watches(self) -> None:
        """Break every open watch."""
        for watch in self._watches:
            watch.cut()

    def send_bookmarks(self) -> None:
        """Send a bookmark on every open watch that wants them."""
        for watch in self._watches:
            watch.nudge()

    @property
    def open_watches(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def _notice(self, change: Change) -> None:
        for watch in self._watches:
            if watch.ask.resource is change.resource:
                watch.notice()

    def _understand(self, request: Request) -> tuple[Ask | None, str]:
        """What is asked, and its name for faults; None for the few paths outside the core API."""
        path = request.url.path
        account = self._account(request)
        if not path.startswith("/api/v1/"):
            return None, f"{request.method.lower()} {path}"
        query = dict(request.query_params)
        headers = request.headers
        ask = read_path(request.method, path, query)
        account.check(ask)
        ask = replace(ask, content_type=headers.get("content-type", ""), accept=headers.get("accept", ""))
        return ask, ask.operation

    def _account(self, request: Request) -> Account:
        """Whose token it is."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or token not in self.accounts:
            raise unauthorized()
        return self.accounts[token]

    async def _answer(
        self, request: Request, ask: Ask | None, operation: str, rule: Rule | None
    ) -> Response | None:
        """Answer with whatever a fault makes of it; None cuts the connection."""
        body = await request.body()
        if rule is None:
            return self._handle(request, ask, body)
        if rule.delay:
            await self._clock.sleep(rule.delay)
        if rule.drop == "before" or (rule.hold == "before" and not await rule.keep()):
            return None
        if rule.status is not None and not rule.apply:
            return _spoiled(rule, rule.status)
        response = self._handle(request, ask, body)
        if rule.drop == "after" or (rule.hold == "after" and not await rule.keep()):
            return None
        return response if rule.status is None else _spoiled(rule, rule.status)

    def _handle(self, request: Request, ask: Ask | None, body: bytes) -> Response:
        try:
            if ask is not None:
                return self._core(ask)
            return self._outside(request, body)
        except ApiError as error:
            return _refuse(error)

    def _outside(self, request: Request, body: bytes) -> Response:
        path = request.url.path
        if request.method == "POST" and path == REVIEW:
            return _json(review(self._account(request), body), 201)
        if request.method != "GET" or path not in STATIC:
            raise no_such_path()
        static = STATIC[path]
        return PlainTextResponse(static) if isinstance(static, str) else _json(static)

    def _core(self, ask: Ask) -> Response:
        match ask.verb:
            case "get" if ask.subresource == "log":
                text = self._read_log(ask)
                return Response(status_code=204) if text is None else PlainTextResponse(text)
            case "get":
                return _json(get(self._store, ask))
            case "list":
                return _json(list_page(self._store, ask))
            case "create":
                return _json(shown_as(ask)(self._writes.create(ask)), 201)
            case "update":
                return _json(shown_as(ask)(self._writes.update(ask)))
            case "patch":
                return _json(shown_as(ask)(self._writes.patch(ask)))
            case "delete":
                return _json(self._deleted(ask, self._writes.delete(ask)[0]))
            case _:
                gone = self._writes.delete_all(ask, selected(self._store, ask))
                return _json(self._deleted_all(ask, gone))

    @staticmethod
    def _deleted(ask: Ask, obj: Json) -> Json:
        """Pods answer with themselves, everything else with a Status."""
        if ask.resource is PODS:
            return with_kind(PODS, obj)
        details = {"name": obj["metadata"]["name"], "kind": ask.resource.plural, "uid": uid_of(obj)}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def _deleted_all(self, ask: Ask, gone: list[Json]) -> Json:
        metadata = {"resourceVersion": str(self._store.rv)}
        return {"kind": f"{ask.resource.kind}List", "apiVersion": "v1", "metadata": metadata, "items": gone}

    async def _watch(self, request: Request, ask: Ask, rule: Rule | None, send: Send) -> None:
        spoiled = await self._spoil_watch(rule)
        if spoiled is not None:
            self._log(request, ask.operation, spoiled.status_code)
            await spoiled(request.scope, request.receive, send)
            return
        if rule is not None and rule.drop:
            self._log(request, ask.operation, CUT)
            await _cut(send)
            return
        self._log(request, ask.operation, 200)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        watch = Watch(ask, self._store)

        async def emit(chunk: bytes) -> None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

        self._watches.add(watch)
        hangs_up = asyncio.create_task(_when_gone(request.receive, watch))
        try:
            if await watch.run(emit):
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._watches.discard(watch)
            hangs_up.cancel()

    async def _spoil_watch(self, rule: Rule | None) -> Response | None:
        if rule is None:
            return None
        if rule.delay:
            await self._clock.sleep(rule.delay)
        if rule.hold and not await rule.keep():
            rule.drop = "before"
        return None if rule.status is None else _spoiled(rule, rule.status)

    def _log(self, request: Request, operation: str, status: int) -> None:
        self.requests.append(
            SeenRequest(
                self._clock.now(), request.method, request.url.path, request.url.query, operation, status
            )
        )


async def _when_gone(receive: Receive, watch: Watch) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    watch.cut()


async def _cut(send: Send) -> None:
    """Promise a byte and never send it: the server then closes the connection under the client."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})


def _json(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    content = json.dumps(body, separators=(",", ":")).encode()
    return Response(content, status, headers, "application/json")


def _refuse(error: ApiError) -> Response:
    return _json(error.body(), error.code, error.headers())


def _spoiled(rule: Rule, status: int) -> Response:
    if rule.body is not None:
        return JSONResponse(rule.body, status, rule.headers)
    error = ApiError(status, REASONS.get(status, "Unknown"), "the server was made to answer so")
    return _json(error.body(), status, rule.headers)
