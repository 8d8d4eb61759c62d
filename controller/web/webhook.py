"""The receiver: GitHub's deliveries over HTTP, from untrusted bytes to one call of the intake.

    size → signature → headers → JSON → notice → which App, is it allowed → intake, within 8 s

Everything before the intake is cheap and local; neither GitHub nor Kubernetes is asked. Whatever arrives, the answer
is 2xx, 4xx, or 503 when the store could not take it in (the delivery is pulled later), never 500.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Protocol

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from controller.domain.constants import WEBHOOK_DEADLINE, WEBHOOK_LIMIT
from controller.domain.deliveries import Delivery, JobNotice, Outcome, PingNotice
from controller.errors import ConfigError, StoreError
from controller.ports import Clock
from controller.settings import Settings
from controller.telemetry.metrics import Metrics, event_label
from controller.web.delivery_request import Refusal, read_request, too_large, unauthorized, unavailable
from controller.web.signature import Signature

log = structlog.get_logger()

BODY_DEADLINE = timedelta(seconds=10)  # GitHub itself hangs up after that
LARGE = 2**20  # bytes of a body; a delivery about a job has a tenth of that
LARGE_AT_ONCE = 2  # whoever has no secret may send what it likes, and it is held until the signature is known


class Intake(Protocol):
    """Where deliveries go."""

    async def take(self, delivery: Delivery, *, known_app: bool, allowed: bool, now: datetime) -> Outcome:
        """Record one delivery and what follows from it; StoreError if that is impossible now."""
        ...


class Receiver:
    """Judges a request and hands the delivery to the intake."""

    def __init__(
        self,
        intake: Intake,
        settings: Settings,
        clock: Clock,
        metrics: Metrics,
        *,
        deadline: timedelta = WEBHOOK_DEADLINE,
    ) -> None:
        if not settings.webhook_secrets:
            raise ConfigError(["$GITHUB_WEBHOOK_SECRET: not set; without it anyone could send deliveries"])
        self._intake = intake
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._deadline = deadline
        self._under_way: set[asyncio.Task[Outcome]] = set()
        self._large = 0

    async def receive(self, request: Request) -> Response:
        """Answer one delivery."""
        event = "other"
        try:
            body = await self._signed_body(request)
            event = event_label(request.headers.get("X-GitHub-Event", ""))
            delivery, known_app = read_request(request.headers, body, self._settings)
            outcome = await self._take(delivery, known_app=known_app)
        except Refusal as refusal:
            self._metrics.webhook_deliveries_total.labels(event, refusal.outcome).inc()
            log.warning("delivery.refused", status=refusal.status, outcome=refusal.outcome, why=str(refusal))
            return JSONResponse({"error": str(refusal)}, status_code=refusal.status)
        self._metrics.webhook_deliveries_total.labels(event, outcome.value).inc()
        log.info("delivery.taken", delivery=delivery.guid, webhook=delivery.event, outcome=outcome.value)
        status = 200 if isinstance(delivery.notice, PingNotice) else 202
        return JSONResponse({"outcome": outcome.value}, status_code=status)

    async def _signed_body(self, request: Request) -> bytes:
        """The body, never held beyond the limit, once its signature is found right."""
        announced = request.headers.get("Content-Length", "")
        if announced.isdecimal() and int(announced[:20]) > WEBHOOK_LIMIT:
            raise too_large()
        signature = Signature(self._settings.webhook_secrets, request.headers.get("X-Hub-Signature-256"))
        if not signature.claimed:
            raise unauthorized()
        try:
            async with asyncio.timeout(BODY_DEADLINE.total_seconds()):
                body = await self._body(request, signature)
        except TimeoutError:
            raise Refusal(408, "timed_out", "the body took too long") from None
        except ClientDisconnect:
            raise Refusal(400, "disconnected", "the connection was closed") from None
        if not signature.holds():
            raise unauthorized()
        return body

    async def _body(self, request: Request, signature: Signature) -> bytes:
        """All of the body; of large ones only a few at once, or strangers could fill the memory."""
        body, large = bytearray(), False
        try:
            async for piece in request.stream():
                if len(body) + len(piece) > WEBHOOK_LIMIT:
                    raise too_large()
                signature.update(piece)
                body += piece
                if len(body) > LARGE and not large:
                    if self._large >= LARGE_AT_ONCE:
                        raise unavailable("too many large deliveries at once")
                    self._large, large = self._large + 1, True
        finally:
            self._large -= large
        return bytes(body)

    async def _take(self, delivery: Delivery, *, known_app: bool) -> Outcome:
        """Hand the delivery over; what is late is cancelled, but the answer does not wait for that to be done."""
        notice, access = delivery.notice, self._settings.file.access
        allowed = not isinstance(notice, JobNotice) or access.allows(notice.entity.name, notice.repo)
        task = asyncio.create_task(
            self._intake.take(delivery, known_app=known_app, allowed=allowed, now=self._clock.now())
        )
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            done, _ = await asyncio.wait({task}, timeout=self._deadline.total_seconds())
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            raise unavailable("the store took too long")
        if task.cancelled():
            raise unavailable("the receiver is stopping")
        error = task.exception()
        if error is None:
            return task.result()
        if not isinstance(error, StoreError):
            log.error("delivery.failed", delivery=delivery.guid, exc_info=error)
        raise unavailable("the store cannot take deliveries now") from error

    def _ended(self, task: asyncio.Task[Outcome]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that the loop does not complain about a late failure


def webhook_routes(receiver: Receiver) -> list[Route]:
    """The routes of the receiver."""
    return [Route("/webhook", receiver.receive, methods=["POST"], name="webhook")]
