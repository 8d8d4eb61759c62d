"""Pages and API with schedules, as the program serves them."""

from random import Random

from starlette.applications import Starlette

from controller.app.serving import controller_routes
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.pages import PageStore
from controller.ports import Clock, Secret
from controller.settings import File
from controller.web.admin import Admin
from controller.web.reader import PageDeps
from controller.web.routes import error_handlers, site
from tests.integration.web_pages.conftest import ReportedLoop

TOKEN = "tok-0c9b1a7e5d"


def an_app(
    database: Database,
    clock: Clock,
    file: File,
    token: str | None = TOKEN,
    *,
    pages: Database | None = None,
) -> Starlette:
    """The application; `pages` are connections of their own for what it reads."""
    admin = Admin(Secret(token) if token else None, clock)
    reads = pages or database
    deps = PageDeps(PageStore(reads), clock, ReportedLoop(), file, lambda: (b"", "text/plain"), admin)
    routes = controller_routes(deps, admin, database, reads, Random(1))
    return site(routes, error_handlers(deps))
