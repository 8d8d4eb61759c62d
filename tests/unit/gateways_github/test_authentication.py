"""JWTs, key files, and installation tokens: minted once, kept an hour, dropped when refused."""

import asyncio
import os
from collections.abc import MutableMapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import structlog
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from controller.errors import (
    GitHubError,
    GitHubForbidden,
    GitHubUnavailable,
    InstallationGone,
    InstallationSuspended,
    RateLimited,
)
from controller.gateways.github import GitHubGateway
from controller.gateways.github.app_auth import AppKeys, refresh_jitter
from tests.clocks import EPOCH, ManualClock
from tests.unit.gateways_github.scripted import (
    ORG,
    OTHER_ORG,
    PERSON,
    ScriptedGitHub,
    a_job,
    answer,
    connected,
    private_key,
    token_of,
)

Events = list[MutableMapping[str, Any]]
NEW_FORMAT = "ghs_111_eyJhbGciOiJSUzI1NiJ9." + "a-_." * 120


def claims_of(token: str) -> dict[str, Any]:
    public = load_pem_private_key(private_key(), None).public_key()
    options = {"verify_exp": False, "verify_iat": False}
    return jwt.decode(token, public, algorithms=["RS256"], options=options)  # type: ignore[arg-type]


async def test_a_jwt_is_backdated_a_minute_and_lasts_nine(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, {"id": 7, "suspended_at": None, "permissions": {"actions": "read"}}))
    await gateway.get_installation("111", 7)
    now = int(EPOCH.timestamp())
    assert claims_of(token_of(github.requests[0])) == {"iat": now - 60, "exp": now + 540, "iss": "111"}


async def test_each_scope_authenticates_with_its_own_app(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job()))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    await gateway.get_job(PERSON, "someone/project", 1)
    assert [claims_of(token_of(mint))["iss"] for mint in github.mints] == ["111", "222"]
    assert [mint.url.path for mint in github.mints] == [
        "/api/v3/app/installations/7/access_tokens",
        "/api/v3/app/installations/9/access_tokens",
    ]


async def test_a_token_serves_until_a_minute_before_its_end(
    github: ScriptedGitHub, gateway: GitHubGateway, clock: ManualClock
) -> None:
    github.answers(answer(200, a_job()))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    await clock.advance(timedelta(minutes=59) - refresh_jitter(7, timedelta(hours=1)) - timedelta(seconds=1))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    assert len(github.mints) == 1
    await clock.advance(timedelta(seconds=2))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    assert len(github.mints) == 2


def test_installations_refresh_at_different_times_but_each_at_its_own() -> None:
    hour = timedelta(hours=1)
    jitters = [refresh_jitter(installation, hour) for installation in range(100)]
    assert jitters == [refresh_jitter(installation, hour) for installation in range(100)]
    assert len(set(jitters)) > 90
    assert all(timedelta(0) <= jitter < timedelta(minutes=3) for jitter in jitters)


async def test_the_new_token_format_is_as_opaque_as_the_old(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.mint = lambda request: answer(201, {"token": NEW_FORMAT, "expires_at": "2026-03-01T13:00:00Z"})
    github.answers(answer(200, a_job()))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    assert token_of(github.requests[0]) == NEW_FORMAT


async def test_twenty_calls_at_once_mint_one_token(github: ScriptedGitHub, gateway: GitHubGateway) -> None:
    github.answers(answer(200, a_job()))
    await asyncio.gather(*(gateway.get_job(ORG, "example-org/llvm", 1) for _ in range(20)))
    assert len(github.mints) == 1
    assert len(github.requests) == 20


async def test_a_failing_mint_fails_everyone_who_waits_and_the_next_call_tries_anew(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job()))
    github.mint = lambda request: answer(500, {"message": "Server Error"})
    calls = (gateway.get_job(ORG, "example-org/llvm", 1) for _ in range(5))
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [GitHubUnavailable] * 5
    assert len(github.mints) == 1
    github.mint = None
    await gateway.get_job(ORG, "example-org/llvm", 1)


async def test_a_waiter_that_gives_up_does_not_take_the_mint_with_it(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job()))
    first = asyncio.create_task(gateway.get_job(ORG, "example-org/llvm", 1))
    second = asyncio.create_task(gateway.get_job(ORG, "example-org/llvm", 1))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).job_id == 1
    assert len(github.mints) == 1


async def test_a_refused_token_is_replaced_and_the_call_sent_again(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(401, {"message": "Bad credentials"}), answer(200, a_job()))
    assert (await gateway.get_job(ORG, "example-org/llvm", 1)).job_id == 1
    assert len({token_of(request) for request in github.requests}) == 2


async def test_a_token_that_is_refused_twice_is_forbidden(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(401, {"message": "Bad credentials"}))
    with pytest.raises(GitHubForbidden) as refused:
        await gateway.get_job(ORG, "example-org/llvm", 1)
    assert refused.value.status == 401
    assert len(github.requests) == 2
    assert len(github.mints) == 2


async def test_calls_refused_together_mint_one_new_token(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    expired = github.minted()
    github.mint = lambda request: expired if len(github.mints) == 1 else github.minted()
    old = expired.json()["token"]
    github.handler = lambda request: answer(401) if token_of(request) == old else answer(200, a_job())
    await asyncio.gather(*(gateway.get_job(ORG, "example-org/llvm", 1) for _ in range(10)))
    assert len(github.mints) == 2


@pytest.mark.parametrize(
    ("given", "error", "event"),
    [
        (answer(404, {"message": "Not Found"}), InstallationGone, "auth_attempt.not_found"),
        (
            answer(403, {"message": "This installation has been suspended"}),
            InstallationSuspended,
            "auth_attempt.suspended",
        ),
        (answer(403, {"message": "No"}), GitHubForbidden, "auth_attempt.failed"),
        (answer(401, {"message": "'Issued at' claim ('iat') ..."}), GitHubForbidden, "auth_attempt.failed"),
        (answer(429, {"message": "Slow down"}), RateLimited, "auth_attempt.failed"),
        (answer(502), GitHubUnavailable, "auth_attempt.failed"),
        (answer(201, {"token": "ghs_x"}), GitHubUnavailable, "auth_attempt.failed"),
        (answer(201, {"token": "ghs_x", "expires_at": "soon"}), GitHubUnavailable, "auth_attempt.failed"),
        (httpx.ReadTimeout("slow"), GitHubUnavailable, "auth_attempt.failed"),
    ],
)
async def test_a_failed_authentication_is_named_and_logged(
    github: ScriptedGitHub,
    gateway: GitHubGateway,
    given: httpx.Response | Exception,
    error: type[GitHubError],
    event: str,
) -> None:
    github.mint = lambda request: given
    with structlog.testing.capture_logs() as events, pytest.raises(error):
        await gateway.get_job(ORG, "example-org/llvm", 1)
    assert [(e["event"], e["app_id"], e["installation_id"]) for e in events] == [(event, "111", 7)]
    assert github.requests == []


async def test_a_successful_authentication_is_logged_without_the_token(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job()))
    with structlog.testing.capture_logs() as events:
        await gateway.get_job(ORG, "example-org/llvm", 1)
    assert [e["event"] for e in events] == ["auth_attempt.ok"]
    assert "ghs_" not in str(events)


async def test_a_limited_app_makes_no_further_attempts_but_its_installations_with_a_token_go_on(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job()))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    github.mint = lambda request: answer(429, {"message": "Slow down"}, retry_after="30")
    with structlog.testing.capture_logs() as events:
        for _ in range(3):
            with pytest.raises(RateLimited):
                await gateway.get_job(OTHER_ORG, "other-org/llvm", 1)
    assert len(github.mints) == 2
    assert [e["event"] for e in events] == ["auth_attempt.failed"]
    await gateway.get_job(ORG, "example-org/llvm", 1)


async def test_a_forgotten_installation_authenticates_anew(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job()))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    gateway.forget_installation(7)
    await gateway.get_job(ORG, "example-org/llvm", 1)
    assert len(github.mints) == 2


async def test_a_token_that_was_being_minted_for_a_forgotten_installation_is_not_kept(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    def forget_meanwhile(request: httpx.Request) -> httpx.Response:
        if len(github.mints) == 1:
            gateway.forget_installation(7)
        return github.minted()

    github.mint = forget_meanwhile
    github.answers(answer(200, a_job()))
    await gateway.get_job(ORG, "example-org/llvm", 1)
    await gateway.get_job(ORG, "example-org/llvm", 1)
    assert len(github.mints) == 2


async def test_an_installation_suspended_under_a_living_token_is_named_so(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(403, {"message": "This installation has been suspended"}))
    with pytest.raises(InstallationSuspended):
        await gateway.get_job(ORG, "example-org/llvm", 1)


async def test_an_app_that_is_not_configured_is_forbidden(gateway: GitHubGateway) -> None:
    with pytest.raises(GitHubForbidden, match="333"):
        await gateway.get_installation("333", 7)


@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"-----BEGIN RSA PRIVATE KEY-----\nabc\n"])
def test_a_key_that_cannot_be_read_is_forbidden_and_not_quoted(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "org.pem").write_bytes(content)
    with pytest.raises(GitHubForbidden, match=r"org\.pem") as refused:
        AppKeys({"111": tmp_path / "org.pem"}).sign_jwt("111", EPOCH)
    assert "nonsense" not in str(refused.value)


def test_a_key_file_is_read_again_when_it_changes_and_the_old_key_outlives_a_bad_file(tmp_path: Path) -> None:
    file = tmp_path / "org.pem"
    file.write_bytes(b"nonsense")
    keys = AppKeys({"111": file})
    with pytest.raises(GitHubForbidden):
        keys.sign_jwt("111", EPOCH)
    file.write_bytes(private_key())
    first = keys.sign_jwt("111", EPOCH).reveal()
    file.write_bytes(b"half-written")
    with structlog.testing.capture_logs() as events:
        assert keys.sign_jwt("111", EPOCH).reveal() == first
    assert [e["event"] for e in events] == ["app_key.unreadable"]


def test_a_mounted_secret_that_is_swapped_is_noticed(tmp_path: Path) -> None:
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
    (tmp_path / "one/key.pem").write_bytes(b"nonsense")
    (tmp_path / "two/key.pem").write_bytes(private_key())
    (tmp_path / "data").symlink_to("one")
    keys = AppKeys({"111": tmp_path / "data/key.pem"})
    with pytest.raises(GitHubForbidden):
        keys.sign_jwt("111", EPOCH)
    (tmp_path / "next").symlink_to("two")
    os.replace(tmp_path / "next", tmp_path / "data")
    assert keys.sign_jwt("111", EPOCH).reveal()


async def test_no_secret_is_shown_by_anything(github: ScriptedGitHub, tmp_path: Path) -> None:
    leak = {"message": "token ghs_" + "a" * 36 + " is bad"}
    github.answers(answer(422, leak))
    async with connected(github, tmp_path) as gateway:
        with pytest.raises(GitHubError) as refused:
            await gateway.get_job(ORG, "example-org/llvm", 1)
        assert "ghs_" not in f"{refused.value!r} {refused.value} {gateway!r} {vars(gateway)}"
