"""The simulated GitHub as one object: an ASGI app to serve, and a clock that drives it."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from controller.ports import Clock
from controller.simulators.github.control import Control
from controller.simulators.github.errors import not_found
from controller.simulators.github.pipeline import endpoint
from controller.simulators.github.routes.table import OPERATIONS, paths
from controller.simulators.github.scenario import Scenario
from controller.simulators.github.wire import Wire


class GitHubSimulator(Scenario):
    """Serve `app` with uvicorn, set `base_url` and `webhook_url`, and keep it `running()`."""

    def __init__(self, clock: Clock, rng: random.Random, webhook_secret: str) -> None:
        super().__init__(clock, rng, webhook_secret)
        self.app = self._make_app()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send webhooks and let time pass until the block ends."""
        async with self.webhooks.sending():
            later = asyncio.create_task(self.timers.run())
            try:
                yield
            finally:
                later.cancel()
                await asyncio.gather(later, return_exceptions=True)
                self.faults.clear()

    async def settle(self) -> None:
        """Let everything happen that is due by the clock, and wait until its webhooks are answered."""
        self.timers.run_due()
        while not self.webhooks.idle:
            await self.webhooks.sent()
            self.timers.run_due()

    def _make_app(self) -> Starlette:
        routes = [
            Route(path, endpoint(self, operation), methods=[operation.method])
            for operation in sorted(OPERATIONS, key=lambda each: each.template.count("{"))
            for path in paths(operation)
        ]
        app = Starlette(
            routes=[*routes, *Wire(self).routes(), *Control(self).routes()],
            exception_handlers={404: _answer_not_found, 405: _answer_not_found},
        )
        app.router.redirect_slashes = False
        return app


async def _answer_not_found(request: Request, error: Exception) -> Response:
    """GitHub knows no 405, and a trailing slash is another, unknown path."""
    return JSONResponse(not_found().body, 404)
