"""Reading a request whose signature held: headers and JSON become a delivery, or a refusal says what is wrong."""

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import parse_qs

from controller.decide.deliveries import BadPayload, read_delivery
from controller.domain.constants import WEBHOOK_LIMIT
from controller.domain.deliveries import Delivery, JobNotice, Notice
from controller.settings import App, Settings

EVENT = re.compile(r"[a-z0-9_]{1,100}")
GUID = re.compile(r"[A-Za-z0-9-]{1,100}")
TARGET = re.compile(r"[A-Za-z0-9._-]{1,64}")
APP_HOOK = "integration"  # webhooks of repositories and organizations name another target
FORM = "application/x-www-form-urlencoded"


class Refusal(Exception):
    """A request that never reaches the store: outcome for the metrics, words for the sender."""

    def __init__(self, status: int, outcome: str, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.outcome = outcome


def unauthorized() -> Refusal:
    """One answer for every way in which a signature can be wrong."""
    return Refusal(401, "unauthorized", "unauthorized")


def bad_request(words: str) -> Refusal:
    """The sender is known, but what it says makes no sense."""
    return Refusal(400, "bad_request", words)


def too_large() -> Refusal:
    """GitHub sends nothing above its own limit."""
    return Refusal(413, "too_large", f"the body is larger than {WEBHOOK_LIMIT} bytes")


def unavailable(words: str) -> Refusal:
    """Nothing was written, or nobody knows: the delivery counts as failed and is pulled later."""
    return Refusal(503, "unavailable", words)


def read_request(headers: Mapping[str, str], body: bytes, settings: Settings) -> tuple[Delivery, bool]:
    """The delivery, and whether the App that sent it is the one we use for such an account."""
    event = _header(headers, "X-GitHub-Event", EVENT)
    guid = _header(headers, "X-GitHub-Delivery", GUID)
    payload = _json(_payload(headers.get("Content-Type", ""), body))
    try:
        notice = read_delivery(event, payload)
    except BadPayload as error:
        raise bad_request(str(error)) from None
    target = ""
    if "X-GitHub-Hook-Installation-Target-ID" in headers:
        target = _header(headers, "X-GitHub-Hook-Installation-Target-ID", TARGET)
    kind = headers.get("X-GitHub-Hook-Installation-Target-Type", APP_HOOK)
    app = _sender(notice, target, settings.file.github.apps) if kind == APP_HOOK else None
    return Delivery(guid, app.app_id if app else target, event, "webhook", notice), app is not None


def _header(headers: Mapping[str, str], name: str, form: re.Pattern[str]) -> str:
    value = headers.get(name)
    if value is None:
        raise bad_request(f"{name}: missing")
    if form.fullmatch(value) is None:
        raise bad_request(f"{name}: not what GitHub sends")
    return value


def _payload(content_type: str, body: bytes) -> bytes | str:
    """The JSON itself; hooks set to the form type wrap it in a field."""
    if content_type.partition(";")[0].strip().lower() != FORM:
        return body
    try:
        fields = parse_qs(body.decode("ascii"), errors="strict", max_num_fields=10)
    except ValueError:
        raise bad_request("the form cannot be read") from None
    match fields.get("payload"):
        case [payload]:
            return payload
        case _:
            raise bad_request("payload: expected once in the form")


def _json(text: bytes | str) -> object:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise bad_request("the body is nested too deeply") from None
    except ValueError:
        raise bad_request("the body is not JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _sender(notice: Notice, target: str, apps: Mapping[Any, App]) -> App | None:
    """The configured App behind a delivery: of the owner's type for a job, any of ours otherwise.

    Old servers name no target; then the one App that could have sent it is assumed. An App that is configured by its
    client id cannot be compared with the number that GitHub names; the signature has to do.
    """
    if isinstance(notice, JobNotice):
        candidates = [apps[notice.entity.type]] if notice.entity.type in apps else []
    else:
        candidates = list({app.app_id: app for app in apps.values()}.values())
    if not target:
        return candidates[0] if len(candidates) == 1 else None
    named = [app for app in candidates if app.app_id == target]
    by_client_id = [app for app in candidates if not app.app_id.isdecimal()]
    return next(iter(named or by_client_id), None)
