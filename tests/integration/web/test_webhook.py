"""Deliveries over HTTP into PostgreSQL: what is accepted, and what is refused before it is looked at."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from starlette.requests import Request
from starlette.types import Message

from controller.domain.constants import WEBHOOK_LIMIT
from controller.errors import ConfigError
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.ports import Secret
from controller.telemetry.metrics import Metrics
from controller.web.webhook import LARGE, LARGE_AT_ONCE, Receiver
from tests.clocks import ManualClock
from tests.integration.postgres.queries import counts, rows, the_job
from tests.integration.web.receiving import OLD_SECRET, USER_APP, Sender, receiving, settings, sign
from tests.payloads import CATALOGUE, a_guid, job_payload, personal
from tests.waiting import until


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["outcome"]


# ---- accepted


async def test_a_job_goes_from_queued_to_completed(github: Sender, database: Database) -> None:
    assert outcome(await github.send(job_payload())) == (202, "job_stored")
    assert outcome(await github.send(job_payload("in_progress"))) == (202, "job_marked_running")
    assert outcome(await github.send(job_payload("completed"))) == (202, "job_marked_completed")
    assert (await the_job(database))["status"] == "completed"
    assert github.counted("workflow_job", "job_stored") == 1


async def test_a_redelivery_is_answered_alike_and_changes_nothing(github: Sender, database: Database) -> None:
    same = {"X-GitHub-Delivery": a_guid()}
    for _ in range(2):
        assert outcome(await github.send(job_payload(), headers=dict(same))) == (202, "job_stored")
    assert await counts(database) == (1, 1)


async def test_a_ping_is_answered_with_200(github: Sender) -> None:
    assert outcome(await github.send({"zen": "Keep it simple."}, event="ping")) == (200, "ok")


async def test_an_unknown_event_is_ignored_and_counted_under_one_name(github: Sender) -> None:
    assert outcome(await github.send({"action": "opened"}, event="issues")) == (202, "ignored_event")
    assert outcome(await github.send({}, event="never_heard_of")) == (202, "ignored_event")
    assert github.counted("other", "ignored_event") == 2


async def test_the_form_content_type_is_understood(github: Sender) -> None:
    body = urlencode({"payload": json.dumps(job_payload())}).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    assert outcome(await github.send(body, headers=dict(form))) == (202, "job_stored")


async def test_each_of_several_secrets_is_accepted_while_one_is_rotated(github: Sender) -> None:
    assert outcome(await github.send(job_payload(), secret=OLD_SECRET)) == (202, "job_stored")


async def test_githubs_published_test_vector_is_accepted_as_signed(database: Database) -> None:
    """The body is no JSON, so 400 and not 401 says that the signature held."""
    given = settings().model_copy(update={"webhook_secrets": (Secret("It's a Secret to Everybody"),)})
    vector = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    async with receiving(database, given) as github:
        answer = await github.send(b"Hello, World!", headers={"X-Hub-Signature-256": vector})
    assert answer.status_code == 400


# ---- which App, and who may use the boards


async def test_a_personal_account_is_served_by_the_users_app(github: Sender, database: Database) -> None:
    assert outcome(await github.send(personal(job_payload()), app=USER_APP)) == (202, "job_stored")
    job = await the_job(database)
    assert (job["entity_type"], job["app_id"]) == ("User", USER_APP)


@pytest.mark.parametrize("app", [USER_APP, "999"], ids=["the other App", "an unknown App"])
async def test_a_delivery_of_another_app_is_ignored(github: Sender, database: Database, app: str) -> None:
    assert outcome(await github.send(job_payload(), app=app)) == (202, "ignored_no_app")
    assert await counts(database) == (0, 1)


async def test_a_hook_that_is_not_an_apps_is_ignored(github: Sender) -> None:
    kind = {"X-GitHub-Hook-Installation-Target-Type": "organization"}
    assert outcome(await github.send(job_payload(), headers=dict(kind))) == (202, "ignored_no_app")


async def test_without_a_target_the_app_for_the_owners_type_is_assumed(
    github: Sender, database: Database
) -> None:
    none: dict[str, str | None] = {"X-GitHub-Hook-Installation-Target-Type": None}
    answer = await github.send(personal(job_payload()), app=None, headers=none)
    assert outcome(answer) == (202, "job_stored")
    assert (await the_job(database))["app_id"] == USER_APP


async def test_without_an_app_for_the_owners_type_the_delivery_is_ignored(database: Database) -> None:
    only_users = {"apps": {"User": {"appId": USER_APP, "privateKeyFile": "/user.pem"}}}
    async with receiving(database, settings(github=only_users)) as github:
        assert outcome(await github.send(job_payload(), app=None)) == (202, "ignored_no_app")
        payload = {"action": "suspend", "installation": {"id": 31}}
        assert outcome(await github.send(payload, event="installation", app=None)) == (202, "ok")


async def test_an_app_configured_by_its_client_id_is_trusted_by_its_signature(database: Database) -> None:
    by_client_id = {"apps": {"Organization": {"appId": "Iv1.8a61f9b3a7aba766", "privateKeyFile": "/k"}}}
    async with receiving(database, settings(github=by_client_id)) as github:
        assert outcome(await github.send(job_payload(), app="111")) == (202, "job_stored")
    assert (await the_job(database))["app_id"] == "Iv1.8a61f9b3a7aba766"


async def test_who_may_not_use_the_boards_gets_no_job(database: Database) -> None:
    async with receiving(database, settings(access={"deny": ["Example-Org/LLVM"]})) as github:
        assert outcome(await github.send(job_payload())) == (202, "not_allowed")
    assert (await counts(database))[0] == 0


# ---- refused before it is looked at

FORGED: list[dict[str, str | None]] = [
    {"X-Hub-Signature-256": None},
    {"X-Hub-Signature-256": ""},
    {"X-Hub-Signature-256": sign(b"another body")},
    {"X-Hub-Signature-256": sign(json.dumps(job_payload()).encode(), "a guess")},
    {"X-Hub-Signature-256": sign(json.dumps(job_payload()).encode())[:-1]},
    {"X-Hub-Signature-256": sign(json.dumps(job_payload()).encode()).removeprefix("sha256=")},
    {"X-Hub-Signature-256": sign(json.dumps(job_payload()).encode()).replace("sha256", "sha1")},
    {"X-Hub-Signature-256": "sha256=" + "z" * 64},
    {"X-Hub-Signature-256": "sha256=" + "é" * 64},
    {"X-Hub-Signature-256": None, "X-Hub-Signature": "sha1=" + "0" * 40},
]


async def test_every_wrong_signature_gets_the_same_401_without_a_hint(
    github: Sender, database: Database
) -> None:
    answers = [await github.send(job_payload(), headers=_latin(forged)) for forged in FORGED]
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (401, b'{"error":"unauthorized"}')
    }
    assert await counts(database) == (0, 0)
    assert github.counted("other", "unauthorized") == len(FORGED)


def _latin(headers: dict[str, str | None]) -> dict[str, Any]:
    return {name: value.encode("latin-1") if value else value for name, value in headers.items()}


async def test_a_receiver_without_a_secret_does_not_start(database: Database) -> None:
    given = settings().model_copy(update={"webhook_secrets": ()})
    with pytest.raises(ConfigError, match="GITHUB_WEBHOOK_SECRET"):
        Receiver(Intake(database, CATALOGUE), given, ManualClock(), Metrics())


async def test_a_body_that_announces_more_than_the_limit_is_refused_unread(github: Sender) -> None:
    """Only the head is sent: an answer proves that the body was not waited for."""
    url = github.client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(
        b"POST /webhook HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\n\r\n"
        % (b"0" * 64, WEBHOOK_LIMIT + 1)
    )
    async with asyncio.timeout(30):
        assert b" 413 " in await reader.readline()
    writer.close()


async def test_a_body_of_unknown_length_is_refused_once_it_is_over_the_limit(
    github: Sender, database: Database
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(WEBHOOK_LIMIT // 2**20 + 1):
            yield b" " * 2**20

    head = {"X-Hub-Signature-256": "sha256=" + "0" * 64}
    answer = await github.client.post("/webhook", content=endless(), headers=head)
    assert answer.status_code == 413
    assert await counts(database) == (0, 0)


async def test_a_body_of_exactly_the_limit_is_read(github: Sender) -> None:
    payload = json.dumps(job_payload()).encode()
    assert outcome(await github.send(payload.ljust(WEBHOOK_LIMIT))) == (202, "job_stored")


async def test_strangers_cannot_fill_the_memory(database: Database) -> None:
    receiver = Receiver(Intake(database, CATALOGUE), settings(), ManualClock(), Metrics())
    halfway, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def send(size: int, *, stop: bool = False) -> int:
        pieces = [{"type": "http.request", "body": b" " * size, "more_body": each} for each in (True, False)]

        async def receive() -> Message:
            if stop and len(pieces) == 1:
                halfway.release()
                await go_on.wait()
            return pieces.pop(0)

        head = [(b"x-hub-signature-256", b"sha256=" + b"0" * 64)]
        request = Request({"type": "http", "method": "POST", "headers": head}, receive)
        return (await receiver.receive(request)).status_code

    first = [asyncio.create_task(send(2 * LARGE, stop=True)) for _ in range(LARGE_AT_ONCE)]
    for _ in first:
        await halfway.acquire()
    assert await send(2 * LARGE) == 503
    assert await send(100) == 401
    go_on.set()
    assert await asyncio.gather(*first) == [401] * LARGE_AT_ONCE
    assert await send(2 * LARGE) == 401


async def test_a_sender_that_hangs_up_in_the_middle_leaves_nothing(
    github: Sender, database: Database
) -> None:
    url = github.client.base_url
    _, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(
        b"POST /webhook HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=%s\r\nContent-Length: 100\r\n\r\n{"
        % (b"0" * 64)
    )
    await writer.drain()
    writer.close()

    async def noticed() -> bool:
        return github.counted("other", "disconnected") == 1

    await until(noticed)
    assert await counts(database) == (0, 0)
    assert outcome(await github.send(job_payload())) == (202, "job_stored")


async def test_only_post_is_served(github: Sender) -> None:
    assert (await github.client.get("/webhook")).status_code == 405


async def test_the_event_keeps_how_it_came(github: Sender, database: Database) -> None:
    guid = a_guid()
    await github.send(job_payload(), headers={"X-GitHub-Delivery": guid})
    (event,) = await rows(database, "SELECT delivery, source, app_id FROM events")
    assert event == {"delivery": guid, "source": "webhook", "app_id": "111"}
