"""What the doctor asks GitHub, as an App: itself, where it is installed, what it was last sent, and the time."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from controller.domain.checkup import AppFacts, InstallationFacts
from controller.gateways.github.answers import Item
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.deliveries import read_delivery
from controller.gateways.github.pages import PER_PAGE, each_page, within

GET_APP = Call("get_app", "GET", "/app")


async def get_app(ask: Ask, app_id: str) -> AppFacts:
    """The App as GitHub describes it to its key."""
    item = (await ask(GET_APP)).item()
    permissions, events = item.text_map("permissions"), item.texts("events")
    return AppFacts(app_id, item.text("slug"), permissions, events, _page_of(item))


def _page_of(app: Item) -> str:
    """Where the App's owner changes it; what GitHub links to is the page for everybody else."""
    shown = urlsplit(app.text("html_url"))
    owner = app.optional_item("owner")
    of = f"/organizations/{owner.text('login')}" if owner and owner.text("type") == "Organization" else ""
    return f"{shown.scheme}://{shown.netloc}{of}/settings/apps/{app.text('slug')}"


async def get_time(ask: Ask) -> datetime | None:
    """What GitHub's clock shows; it says so also to those whom it refuses. None: it does not say."""
    answer = await ask(GET_APP, also=range(400, 500))
    try:
        return parsedate_to_datetime(answer.headers.get("date", "")).astimezone(UTC)
    except ValueError:
        return None


async def last_delivery(ask: Ask) -> datetime | None:
    """When the newest delivery left of those that GitHub remembers."""
    call = Call("list_deliveries", "GET", "/app/hook/deliveries", {"per_page": 1})
    return next((read_delivery(item).delivered_at for item in (await ask(call)).items()), None)


async def list_installations(ask: Ask, deadline: timedelta) -> tuple[InstallationFacts, ...]:
    """All installations, every page."""
    call = Call("list_installations", "GET", "/app/installations", {"per_page": PER_PAGE})
    found: dict[int, InstallationFacts] = {}
    async with within(deadline, call):
        async for answer in each_page(ask, call):
            for item in answer.items():
                facts = InstallationFacts(
                    installation_id=item.integer("id"),
                    login=item.item("account").text("login"),
                    kind=item.text("target_type"),
                    suspended_at=item.optional_time("suspended_at"),
                    permissions=item.text_map("permissions"),
                    page=item.text("html_url"),
                )
                found[facts.installation_id] = facts
    return tuple(found.values())
