"""What probes and scrapers ask: `/health`, `/ready`, `/metrics`. None of them touches the database."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.domain.status import LoopStatus
from controller.ports import Clock
from controller.web.rendering import FRESH, SECURITY_HEADERS, data_response


class StatusPages:
    """The loop's state for machines."""

    def __init__(
        self, status: LoopStatus, clock: Clock, render_metrics: Callable[[], tuple[bytes, str]]
    ) -> None:
        self._status = status
        self._clock = clock
        self._render_metrics = render_metrics

    def routes(self) -> list[Route]:
        """The three addresses, which every process serves."""
        return [
            Route("/health", self.health),
            Route("/ready", self.ready),
            Route("/metrics", self.metrics),
        ]

    async def health(self, request: Request) -> Response:
        """503 when a leading loop has not come round for five minutes."""
        healthy = self._status.snapshot().healthy(self._clock.now())
        return data_response({"status": "ok" if healthy else "stalled"}, 200 if healthy else 503)

    async def ready(self, request: Request) -> Response:
        """Who leads, since when, and how the last iteration went; one that stands by serves pages too."""
        seen = self._status.snapshot()
        return data_response(
            {
                "role": seen.role,
                "started": seen.started_at,
                "iterations": seen.iterations,
                "last_iteration": seen.last_iteration_at,
                "last_error": seen.last_error,
                "unknown": seen.unknown,
            }
        )

    async def metrics(self, request: Request) -> Response:
        """The Prometheus text."""
        body, kind = self._render_metrics()
        return Response(body, headers={**SECURITY_HEADERS, **FRESH, "Content-Type": kind})
