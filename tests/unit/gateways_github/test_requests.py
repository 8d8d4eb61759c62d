"""One request: headers, deadlines, retries, redirects, limits, ETags, and the error that each answer becomes."""

import asyncio
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from controller.errors import (
    GitHubConflict,
    GitHubError,
    GitHubForbidden,
    GitHubNotFound,
    GitHubRefused,
    GitHubUnavailable,
    RateLimited,
)
from controller.gateways.github import GitHubGateway, Observation
from tests.clocks import EPOCH, ManualClock
from tests.unit.gateways_github.scripted import (
    API,
    GROUP,
    ORG,
    OTHER_ORG,
    SHORT,
    ScriptedGitHub,
    a_job,
    a_runner,
    answer,
    connected,
)

JOB = "/repos/example-org/llvm/actions/jobs/1"
JIT = {"runner": a_runner(5, status="offline"), "encoded_jit_config": "c2VjcmV0"}


async def ask(gateway: GitHubGateway) -> int:
    return (await gateway.get_job(ORG, "example-org/llvm", 1)).job_id


async def test_every_request_carries_githubs_headers(github: ScriptedGitHub, gateway: GitHubGateway) -> None:
    github.answers(answer(200, a_job()))
    await ask(gateway)
    request = github.requests[0]
    assert str(request.url) == API + JOB
    assert request.headers["accept"] == "application/vnd.github+json"
    assert request.headers["x-github-api-version"] == "2022-11-28"
    assert request.headers["user-agent"] == "switchboard"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, GitHubRefused),
        (403, GitHubForbidden),
        (404, GitHubNotFound),
        (409, GitHubConflict),
        (410, GitHubRefused),
        (422, GitHubRefused),
        (451, GitHubRefused),
        (500, GitHubUnavailable),
        (502, GitHubUnavailable),
        (304, GitHubUnavailable),
        (300, GitHubUnavailable),
    ],
)
async def test_each_status_becomes_its_error(
    github: ScriptedGitHub, gateway: GitHubGateway, status: int, error: type[GitHubError]
) -> None:
    github.answers(answer(status, {"message": "Because"}, x_github_request_id="A1:B2"))
    with pytest.raises(GitHubError) as raised:
        await ask(gateway)
    assert type(raised.value) is error
    assert (raised.value.status, raised.value.request_id) == (status, "A1:B2")
    assert "get_job" in str(raised.value)
    assert "A1:B2" in str(raised.value)


async def test_a_missing_permission_is_named(github: ScriptedGitHub, gateway: GitHubGateway) -> None:
    github.answers(answer(403, {"message": "No"}, x_accepted_github_permissions="actions=read"))
    with pytest.raises(GitHubForbidden, match="needs actions=read"):
        await ask(gateway)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>proxy</html>",
        b"[]",
        b"null",
        b"{}",
        b'{"id": "1"}',
        b'{"id": true}',
        b"\xff\xfe",
        b"[" * 99_999,
    ],
)
async def test_a_body_that_is_not_what_was_promised_is_an_outage(
    github: ScriptedGitHub, gateway: GitHubGateway, body: bytes
) -> None:
    github.answers(httpx.Response(200, content=body))
    with pytest.raises(GitHubUnavailable):
        await ask(gateway)
    with pytest.raises(GitHubUnavailable):
        await gateway.list_run_jobs(ORG, "example-org/llvm", 1)


@pytest.mark.parametrize(
    "broken",
    [answer(502), answer(503), answer(504), httpx.ConnectError("no"), httpx.RemoteProtocolError("cut")],
)
async def test_a_get_that_broke_on_the_way_is_sent_once_more(
    github: ScriptedGitHub, gateway: GitHubGateway, broken: httpx.Response | Exception
) -> None:
    github.answers(broken, answer(200, a_job()))
    assert await ask(gateway) == 1
    github.requests.clear()
    github.answers(broken)
    with pytest.raises(GitHubUnavailable):
        await ask(gateway)
    assert len(github.requests) == 2


@pytest.mark.parametrize("broken", [answer(500), answer(503, retry_after="9"), httpx.ReadTimeout("slow")])
async def test_other_failures_are_not_sent_again(
    github: ScriptedGitHub, gateway: GitHubGateway, broken: httpx.Response | Exception
) -> None:
    github.answers(broken)
    with pytest.raises(GitHubUnavailable):
        await ask(gateway)
    assert len(github.requests) == 1


@pytest.mark.parametrize(
    "broken",
    [answer(500), answer(502), answer(504), httpx.ConnectError("no"), httpx.ReadTimeout("slow"), answer(201)],
)
async def test_a_jit_call_is_never_sent_again_after_a_lost_answer(
    github: ScriptedGitHub, gateway: GitHubGateway, broken: httpx.Response | Exception
) -> None:
    github.answers(broken)
    with pytest.raises(GitHubUnavailable):
        await gateway.create_jit_runner(ORG, "a-name", ("riscv",), 3)
    assert len(github.requests) == 1


async def test_a_jit_call_refused_for_an_expired_token_is_sent_again(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(401), answer(201, JIT))
    made = await gateway.create_jit_runner(ORG, "a-name", ("riscv",), 3)
    assert made.runner.id == 5
    assert len(github.requests) == 2


async def test_a_github_that_does_not_answer_is_given_up(github: ScriptedGitHub, tmp_path: Path) -> None:
    class Silent(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await asyncio.Event().wait()
            raise AssertionError

    files = {"111": tmp_path / "org.pem"}
    async with connected(github, tmp_path):
        pass  # writes the key files
    async with GitHubGateway(
        API,
        files,
        github.clock,
        runner_group=GROUP,
        observe=github.observations.append,
        transport=Silent(),
        deadlines=SHORT,
    ) as gateway:
        with pytest.raises(GitHubUnavailable, match="in time"):
            await gateway.get_installation("111", 7)
    assert github.observations == [Observation("get_installation", "timeout")]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_renamed_repository_is_followed(
    github: ScriptedGitHub, gateway: GitHubGateway, status: int
) -> None:
    github.answers(answer(status, location=f"{API}/repositories/5/actions/jobs/1"), answer(200, a_job()))
    assert await ask(gateway) == 1
    assert github.requests[1].url.path == "/api/v3/repositories/5/actions/jobs/1"


async def test_a_redirected_post_stays_a_post_with_its_body(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(307, location="/api/v3/organizations/5/jit"), answer(201, JIT))
    await gateway.create_jit_runner(ORG, "a-name", ("riscv",), 3)
    first, second = github.requests
    assert second.method == "POST"
    assert second.content == first.content


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.test/api/v3/jobs/1",
        "http://github.test/api/v3/jobs/1",
        "https://github.test:8443/api/v3/jobs/1",
        "https://github.test@evil.test/",
        "//evil.test/",
    ],
)
async def test_a_token_never_goes_to_another_host(
    github: ScriptedGitHub, gateway: GitHubGateway, elsewhere: str
) -> None:
    github.answers(answer(301, location=elsewhere))
    with pytest.raises(GitHubRefused, match="another host"):
        await ask(gateway)
    assert len(github.requests) == 1


@pytest.mark.parametrize("location", ["http://[", API + JOB])
async def test_a_redirect_that_leads_nowhere_ends(
    github: ScriptedGitHub, gateway: GitHubGateway, location: str
) -> None:
    github.answers(answer(301, location=location))
    with pytest.raises(GitHubError):
        await ask(gateway)
    assert len(github.requests) <= 5


async def test_a_limited_installation_is_left_alone_until_then_and_others_go_on(
    github: ScriptedGitHub, gateway: GitHubGateway, clock: ManualClock
) -> None:
    github.answers(answer(429, {"message": "Slow down"}, retry_after="30"), answer(200, a_job()))
    for _ in range(3):
        with pytest.raises(RateLimited) as limited:
            await ask(gateway)
        assert limited.value.until == EPOCH + timedelta(seconds=30)
    assert len(github.requests) == 1
    assert gateway.budget(7).blocked_until == limited.value.until
    await gateway.get_job(OTHER_ORG, "other-org/llvm", 1)
    await clock.advance(timedelta(seconds=30))
    assert await ask(gateway) == 1


async def test_a_forgotten_installation_is_not_freed_of_its_limit(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(429, {}, retry_after="30"))
    with pytest.raises(RateLimited):
        await ask(gateway)
    gateway.forget_installation(7)
    with pytest.raises(RateLimited):
        await ask(gateway)
    assert len(github.requests) == 1


async def test_jit_calls_above_the_pace_are_refused_without_being_sent(
    github: ScriptedGitHub, gateway: GitHubGateway, clock: ManualClock
) -> None:
    github.answers(answer(201, JIT))
    assert gateway.budget(7).jit_allowance == 150
    for number in range(150):
        await gateway.create_jit_runner(ORG, f"runner-{number}", ("riscv",), 3)
    with pytest.raises(RateLimited) as limited:
        await gateway.create_jit_runner(ORG, "one-too-many", ("riscv",), 3)
    assert len(github.requests) == 150
    assert gateway.budget(7).jit_allowance == 0
    await clock.advance(limited.value.until - clock.now())
    await gateway.create_jit_runner(ORG, "now-it-may", ("riscv",), 3)


async def test_an_unchanged_answer_is_revalidated_and_served_from_memory(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job(), etag='W/"one"'), httpx.Response(304))
    assert [await ask(gateway) for _ in range(3)] == [1, 1, 1]
    sent = [request.headers.get("if-none-match") for request in github.requests]
    assert sent == [None, 'W/"one"', 'W/"one"']
    assert len({request.headers["accept"] for request in github.requests}) == 1


async def test_an_etag_is_not_shared_between_installations_and_goes_with_them(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_job(), etag='"one"'))
    await ask(gateway)
    await gateway.get_job(OTHER_ORG, "example-org/llvm", 1)
    gateway.forget_installation(7)
    await ask(gateway)
    assert [request.headers.get("if-none-match") for request in github.requests] == [None, None, None]


async def test_each_request_is_observed_once(github: ScriptedGitHub, gateway: GitHubGateway) -> None:
    quota = {"x_ratelimit_limit": "5000", "x_ratelimit_remaining": "4999", "x_ratelimit_reset": "1772370000"}
    github.answers(answer(503), answer(200, a_job(), **quota), httpx.ConnectError("no"))
    await ask(gateway)
    with pytest.raises(GitHubUnavailable):
        await gateway.delete_runner(ORG, 4)
    assert github.observations == [
        Observation("create_token", "201"),
        Observation("get_job", "503", 7),
        Observation("get_job", "200", 7, 4999),
        Observation("delete_runner", "error", 7),
    ]


@pytest.mark.parametrize("repo", ["", "no-slash", "a/b/c", "../b", "a/..", "/b", "a/"])
async def test_a_name_that_would_leave_its_place_in_the_path_is_refused(
    github: ScriptedGitHub, gateway: GitHubGateway, repo: str
) -> None:
    with pytest.raises(GitHubRefused):
        await gateway.get_job(ORG, repo, 1)
    assert github.requests == []


async def test_odd_characters_in_a_name_are_quoted(github: ScriptedGitHub, gateway: GitHubGateway) -> None:
    github.answers(answer(200, a_job()))
    await gateway.get_job(ORG, "a b/c?d#e", 1)
    assert github.requests[0].url.raw_path == b"/api/v3/repos/a%20b/c%3Fd%23e/actions/jobs/1"
