"""What an App asks with its JWT: its installations, and the deliveries that GitHub keeps for three days."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from types import MappingProxyType

from controller.domain.jobs import Entity, EntityType
from controller.domain.sightings import DeliverySighting, InstallationSighting
from controller.errors import InstallationGone
from controller.gateways.github.answers import Item
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.pages import PER_PAGE, each_page, within
from controller.gateways.github.paths import org_path, repo_path
from controller.gateways.github.refusals import refusal


async def get_installation(ask: Ask, app_id: str, installation_id: int) -> InstallationSighting:
    """One installation; InstallationGone on 404."""
    call = Call("get_installation", "GET", f"/app/installations/{installation_id}")
    return await _installation(ask, call, app_id)


async def find_repo_installation(ask: Ask, app_id: str, repo: str) -> InstallationSighting:
    """The installation that covers a repository now; InstallationGone on 404."""
    call = Call("find_repo_installation", "GET", f"{repo_path(repo)}/installation")
    return await _installation(ask, call, app_id)


async def find_org_installation(ask: Ask, app_id: str, org: str) -> InstallationSighting:
    """The installation at an organization; InstallationGone on 404."""
    call = Call("find_org_installation", "GET", f"{org_path(org)}/installation")
    return await _installation(ask, call, app_id)


FAILED = {"status": "failure"}
MAX_DELIVERY_PAGES = 10_000  # three days of a busy App


async def pages_of_deliveries(
    ask: Ask, since: datetime, only: Mapping[str, str] = MappingProxyType({})
) -> AsyncGenerator[tuple[DeliverySighting, ...], None]:
    """The deliveries since then, newest first, page by page: after a long outage there are thousands of pages."""
    call = Call("list_deliveries", "GET", "/app/hook/deliveries", {"per_page": PER_PAGE, **only})
    async with aclosing(each_page(ask, call, MAX_DELIVERY_PAGES)) as answers:
        async for answer in answers:
            page = [read_delivery(item) for item in answer.items()]
            yield tuple(each for each in page if each.delivered_at >= since)
            if any(each.delivered_at < since for each in page):
                return


async def list_deliveries(ask: Ask, since: datetime, deadline: timedelta) -> tuple[DeliverySighting, ...]:
    """The deliveries since then, newest first, all or an error."""
    found: dict[int, DeliverySighting] = {}
    async with (
        within(deadline, Call("list_deliveries", "GET", "")),
        aclosing(pages_of_deliveries(ask, since)) as pages,
    ):
        async for page in pages:
            found.update((each.id, each) for each in page)
    return tuple(sorted(found.values(), key=lambda each: (each.delivered_at, each.id), reverse=True))


async def get_delivery(ask: Ask, delivery_id: int) -> DeliverySighting:
    """One delivery with its payload."""
    answer = await ask(Call("get_delivery", "GET", f"/app/hook/deliveries/{delivery_id}"))
    item = answer.item()
    return read_delivery(item, payload_of=item.item("request"))


def read_delivery(item: Item, payload_of: Item | None = None) -> DeliverySighting:
    """Read one delivery of an answer."""
    return DeliverySighting(
        id=item.integer("id"),
        guid=item.text("guid"),
        event=item.text("event"),
        action=item.optional_text("action"),
        delivered_at=item.time("delivered_at"),
        ok=200 <= (item.optional_integer("status_code") or 0) < 300,
        installation_id=item.optional_integer("installation_id"),
        payload=payload_of.embedded_object("payload") if payload_of is not None else None,
    )


async def _installation(ask: Ask, call: Call, app_id: str) -> InstallationSighting:
    answer = await ask(call, also={404})
    if answer.status == 404:
        raise refusal(answer, InstallationGone)
    item = answer.item()
    return InstallationSighting(
        installation_id=item.integer("id"),
        app_id=app_id,
        suspended=item.optional_text("suspended_at") is not None,
        permissions=item.text_map("permissions"),
        account=_account(item.optional_item("account")),
    )


def _account(item: Item | None) -> Entity | None:
    """Whose installation it is; enterprises have no runners of ours."""
    kind = item.optional_text("type") if item else None
    if item is None or kind not in set(EntityType):
        return None
    return Entity(item.integer("id"), item.text("login"), EntityType(kind))
