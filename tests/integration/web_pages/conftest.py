"""The pages over a real database, asked through their ASGI application."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from controller.domain.status import LoopSnapshot
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.pages import PageStore
from controller.ports import Secret
from controller.settings import File
from controller.web.admin import Admin
from controller.web.reader import PageDeps
from controller.web.routes import error_handlers, page_routes, site
from tests.clocks import ManualClock
from tests.integration.web_pages.seeding import Seed, ago

TOKEN = "the operators' own token"
SETTINGS = {
    "github": {"apps": {"Organization": {"appId": "111", "privateKeyFile": "/nowhere/org.pem"}}},
    "pools": [
        {"name": "scw-em-rv1", "labels": ["ubuntu-24.04-riscv"], "image": "ghcr.io/example/runner:prod"},
        {
            "name": "vector",
            "board": "bpi-f3",
            "labels": ["riscv-rvv"],
            "image": "ghcr.io/example/runner:prod",
        },
    ],
    "web": {"contact": "boards@example.org"},
}


class ReportedLoop:
    """A loop whose state the test sets."""

    def __init__(self) -> None:
        self.reported = LoopSnapshot(
            leads=True,
            started_at=ago(hours=1),
            iterations=240,
            last_iteration_at=ago(seconds=4),
            last_error=None,
        )

    def snapshot(self) -> LoopSnapshot:
        """What the test said last."""
        return self.reported

    def report(self, **changes: Any) -> None:
        """Change what is reported."""
        self.reported = replace(self.reported, **changes)


@pytest.fixture
def loop_status() -> ReportedLoop:
    """The state of the loop."""
    return ReportedLoop()


@pytest.fixture
def seed(database: Database) -> Seed:
    """Writes rows."""
    return Seed(database)


def page_app(database: Database, status: ReportedLoop, settings: dict[str, Any] | None = None) -> Starlette:
    """The application that serves the pages."""
    clock = ManualClock()
    deps = PageDeps(
        store=PageStore(database),
        clock=clock,
        status=status,
        settings=File.model_validate({**SETTINGS, **(settings or {})}),
        render_metrics=lambda: (b"switchboard_leader 1.0\n", "text/plain; version=0.0.4"),
        visitors=Admin(Secret(TOKEN), clock),
    )
    return site(page_routes(deps), error_handlers(deps))


@pytest.fixture
async def browser(database: Database, loop_status: ReportedLoop) -> AsyncIterator[httpx.AsyncClient]:
    """Asks for pages."""
    transport = httpx.ASGITransport(page_app(database, loop_status))
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as client:
        yield client
