"""Pages and API with schedules, as the program serves them."""

from random import Random

from starlette.applications import Starlette

from controller.gateways.postgres.controls import ControlStore
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.pages import PageStore
from controller.gateways.postgres.schedule_desk import ScheduleDesk
from controller.ports import Clock, Secret
from controller.settings import File
from controller.web.admin import Admin
from controller.web.api import api_routes
from controller.web.reader import PageDeps
from controller.web.routes import error_handlers, page_routes
from controller.web.schedules import ScheduleViews, schedule_routes
from tests.integration.web_pages.conftest import ReportedLoop

TOKEN = "tok-0c9b1a7e5d"


def an_app(database: Database, clock: Clock, file: File) -> Starlette:
    """The application."""
    admin = Admin(Secret(TOKEN), clock)
    deps = PageDeps(PageStore(database), clock, ReportedLoop(), file, lambda: (b"", "text/plain"), admin)
    desk = ScheduleDesk(database)
    others = {"occurrences": ScheduleViews(deps, desk).waiting}
    routes = [
        *schedule_routes(deps, admin, desk, Random(1)),
        *api_routes(deps, admin, ControlStore(database), others),
        *page_routes(deps),
    ]
    return Starlette(routes=routes, exception_handlers=dict(error_handlers(deps)))
