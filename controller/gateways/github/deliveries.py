"""What an App asks with its JWT: its installations, and the deliveries that GitHub keeps for three days."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from controller.domain.sightings import DeliverySighting, InstallationSighting
from controller.errors import InstallationGone
from controller.gateways.github.answers import Item
from controller.gateways.github.callers import Ask
from controller.gateways.github.client import Call
from controller.gateways.github.pages import PER_PAGE, each_page, within
from controller.gateways.github.paths import repo_path
from controller.gateways.github.refusals import refusal


async def get_installation(ask: Ask, app_id: str, installation_id: int) -> InstallationSighting:
    """One installation; InstallationGone on 404."""
    call = Call("get_installation", "GET", f"/app/installations/{installation_id}")
    return await _installation(ask, call, app_id)


async def find_repo_installation(ask: Ask, app_id: str, repo: str) -> InstallationSighting:
    """The installation that covers a repository now; InstallationGone on 404."""
    call = Call("find_repo_installation", "GET", f"{repo_path(repo)}/installation")
    return await _installation(ask, call, app_id)


FAILED = {"status": "failure"}


async def list_deliveries(
    ask: Ask, since: datetime, deadline: timedelta, only: Mapping[str, str] = MappingProxyType({})
) -> tuple[DeliverySighting, ...]:
    """The deliveries since then, newest first; later pages are read only while they can hold any."""
    call = Call("list_deliveries", "GET", "/app/hook/deliveries", {"per_page": PER_PAGE, **only})
    found: dict[int, DeliverySighting] = {}
    async with within(deadline, call):
        async for answer in each_page(ask, call):
            page = [read_delivery(item) for item in answer.items()]
            found.update((each.id, each) for each in page if each.delivered_at >= since)
            if any(each.delivered_at < since for each in page):
                break
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
    )
