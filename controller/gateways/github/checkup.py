"""What the doctor asks GitHub, as an App: itself and where it is installed."""

from datetime import timedelta

from controller.domain.checkup import AppFacts, InstallationFacts
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.pages import PER_PAGE, each_page, within


async def get_app(ask: Ask, app_id: str) -> AppFacts:
    """The App as GitHub describes it to its key."""
    item = (await ask(Call("get_app", "GET", "/app"))).item()
    return AppFacts(app_id, item.text("slug"), item.text_map("permissions"), item.texts("events"))


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
                )
                found[facts.installation_id] = facts
    return tuple(found.values())
