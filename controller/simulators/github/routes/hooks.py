"""The App's webhook deliveries: listed by cursor, fetched with their payload, sent again."""

from controller.simulators.github.errors import ApiError
from controller.simulators.github.operations import Answer, Call
from controller.simulators.github.pages import page_size, page_url
from controller.simulators.github.payloads import webhooks
from controller.simulators.github.state import Delivery

CURSOR = "v1_"


def list_deliveries(call: Call) -> Answer:
    """GET /app/hook/deliveries: newest first."""
    status = call.query.get("status")
    if status not in (None, "success", "failure"):
        raise ApiError(422, "Invalid status", errors=[{"code": "invalid", "field": "status"}])
    before = _before(call.query.get("cursor"))
    size = page_size(call.query)
    found: list[Delivery] = []
    for delivery in reversed(call.github.world.deliveries.values()):
        if not _listed(call, delivery) or (before is not None and delivery.id >= before):
            continue
        if status is None or delivery.ok == (status == "success"):
            found.append(delivery)
        if len(found) > size:
            break
    headers = {}
    if len(found) > size:
        url = page_url(call, {"cursor": f"{CURSOR}{found[size - 1].id}"})
        headers["link"] = f'<{url}>; rel="next"'
    return Answer(body=[webhooks.delivery_item(each) for each in found[:size]], headers=headers)


def get_delivery(call: Call) -> Answer:
    """GET /app/hook/deliveries/{delivery_id}."""
    return Answer(body=webhooks.delivery(_delivery(call)))


def redeliver(call: Call) -> Answer:
    """POST /app/hook/deliveries/{delivery_id}/attempts: a new delivery under the same GUID."""
    call.github.webhooks.redeliver(_delivery(call))
    return Answer(202, {})


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    try:
        return int(cursor.removeprefix(CURSOR))
    except ValueError as error:
        raise ApiError(400, "Invalid cursor") from error


def _listed(call: Call, delivery: Delivery) -> bool:
    kept = call.github.now() - delivery.created_at <= call.github.behaviour.deliveries_kept
    return kept and delivery.delivered_at is not None and delivery.app is call.caller.app


def _delivery(call: Call) -> Delivery:
    found = call.github.world.deliveries.get(call.number("delivery_id"))
    if found is None or not _listed(call, found):
        raise ApiError(404, "Not Found")
    return found
