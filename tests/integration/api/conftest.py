"""The API over a real database, asked through its ASGI application by a stranger, by a program and by a browser."""

from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from controller.app.serving import controller_routes
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.pages import PageStore
from controller.ports import Secret
from controller.settings import File
from controller.web.admin import Admin
from controller.web.reader import PageDeps
from controller.web.routes import error_handlers, site
from tests.clocks import ManualClock
from tests.integration.web_pages.conftest import SETTINGS, ReportedLoop
from tests.integration.web_pages.seeding import Seed

TOKEN = "tok-3f1c7a0e5b2d4c6f8091a2b3c4d5e6f7"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SERVER = "http://switchboard.test"

MakeApp = Callable[..., Starlette]


def an_app(
    database: Database,
    clock: ManualClock,
    *,
    token: str | None = TOKEN,
    settings: dict[str, Any] | None = None,
) -> Starlette:
    """Pages and API as the program serves them."""
    admin = Admin(Secret(token) if token else None, clock)
    deps = PageDeps(
        store=PageStore(database),
        clock=clock,
        status=ReportedLoop(),
        settings=File.model_validate({**SETTINGS, **(settings or {})}),
        render_metrics=lambda: (b"switchboard_leader 1.0\n", "text/plain; version=0.0.4"),
        visitors=admin,
    )
    routes = controller_routes(deps, admin, database, database, Random(1))
    return site(routes, error_handlers(deps))


def a_client(app: Starlette, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
    """Somebody who asks."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=SERVER, headers=headers)


@pytest.fixture
def clock() -> ManualClock:
    """The application's time."""
    return ManualClock()


@pytest.fixture
def seed(database: Database) -> Seed:
    """Writes rows."""
    return Seed(database)


@pytest.fixture
def app(database: Database, clock: ManualClock) -> Starlette:
    """The application."""
    return an_app(database, clock)


@pytest.fixture
async def stranger(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """Without a token."""
    async with a_client(app) as client:
        yield client


@pytest.fixture
async def admin(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """With the token."""
    async with a_client(app, BEARER) as client:
        yield client


@pytest.fixture
async def browser(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    """Signed in by the form, with the cookie; asks for pages."""
    async with a_client(app, {"Accept": "text/html,*/*;q=0.8"}) as client:
        answer = await client.post("/login", data={"token": TOKEN, "name": "Anna", "next": "/queue"})
        assert answer.status_code == 303
        yield client
