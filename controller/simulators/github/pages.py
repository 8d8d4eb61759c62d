"""Pagination as GitHub does it: per_page silently clamped, addresses of other pages in Link."""

from collections.abc import Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlencode

from controller.simulators.github.operations import Call

T = TypeVar("T")
DEFAULT, LARGEST = 30, 100


def page_size(query: Mapping[str, str]) -> int:
    """per_page, or 30; never over 100."""
    return min(_positive(query.get("per_page"), DEFAULT), LARGEST)


def paginate(call: Call, items: Sequence[T]) -> tuple[Sequence[T], dict[str, str]]:
    """The asked page and its Link header."""
    size = page_size(call.query)
    page = _positive(call.query.get("page"), 1)
    last = max(1, -(-len(items) // size))
    targets: dict[str, int] = {}
    if page > 1:
        targets |= {"prev": min(page - 1, last), "first": 1}
    if page < last:
        targets |= {"next": page + 1, "last": last}
    links = [f'<{page_url(call, {"page": str(n)})}>; rel="{rel}"' for rel, n in targets.items()]
    headers = {"link": ", ".join(links)} if links else {}
    return items[(page - 1) * size : page * size], headers


def page_url(call: Call, changes: Mapping[str, str]) -> str:
    """The address of another page of the same list."""
    query = urlencode({**call.query, **changes})
    return f"{call.github.base_url}{_path(call)}?{query}"


def _path(call: Call) -> str:
    """The path as asked, or, if so switched, the numeric one that GitHub often puts into links."""
    if not call.github.behaviour.numeric_links:
        return call.path
    world = call.github.world
    if "org" in call.params:
        account = world.account(call.params["org"])
        return call.path.replace(
            f"/orgs/{call.params['org']}", f"/organizations/{account.id if account else 0}"
        )
    if "owner" in call.params:
        full_name = f"{call.params['owner']}/{call.params['repo']}"
        repository = world.repositories[full_name.lower()]
        return call.path.replace(f"/repos/{full_name}", f"/repositories/{repository.id}")
    return call.path


def _positive(text: str | None, default: int) -> int:
    try:
        number = int(text or "")
    except ValueError:
        return default
    return number if number > 0 else default
