"""Runners and the runner group: every page, exact names, races, plans without groups."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
import structlog

from controller.domain.jobs import Scope
from controller.domain.sightings import Runner
from controller.errors import (
    GitHubConflict,
    GitHubError,
    GitHubForbidden,
    GitHubNotFound,
    GitHubRefused,
    GitHubUnavailable,
    InstallationGone,
    InstallationSuspended,
    RunnerBusy,
)
from controller.gateways.github import GitHubGateway
from tests.clocks import ManualClock
from tests.unit.gateways_github.scripted import API, ORG, PERSON, ScriptedGitHub, a_runner, answer

GROUPS = "/orgs/example-org/actions/runner-groups"
RUNNERS = "/orgs/example-org/actions/runners"
OURS = {"id": 3, "name": "RISE RISC-V Runners", "inherited": False}
OTHERS = [
    {"id": 1, "name": "Default", "inherited": False},
    {"id": 2, "name": "RISE RISC-V Runners (staging)", "inherited": False},
    {"id": 4, "name": "rise risc-v runners", "inherited": False},
    {"id": 5, "name": "RISE RISC-V Runners", "inherited": True},
]


def groups(*found: dict[str, Any]) -> httpx.Response:
    return answer(200, {"total_count": len(found), "runner_groups": list(found)})


def runners(*found: dict[str, Any], **headers: str) -> httpx.Response:
    return answer(200, {"total_count": len(found), "runners": list(found)}, **headers)


def sent(github: ScriptedGitHub) -> list[str]:
    paths = (request.url.path.removeprefix("/api/v3") for request in github.requests)
    return [f"{request.method} {path}" for request, path in zip(github.requests, paths, strict=True)]


async def test_the_group_is_found_by_its_exact_name_and_asked_for_once(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.serves({("GET", GROUPS): groups(*OTHERS, OURS)})
    found = await asyncio.gather(*(gateway.ensure_runner_group(ORG) for _ in range(5)))
    assert [*found, await gateway.ensure_runner_group(ORG)] == [3] * 6
    assert sent(github) == [f"GET {GROUPS}"]
    assert github.requests[0].url.params["per_page"] == "100"


async def test_a_missing_group_is_created_as_the_settings_want_it(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.serves({("GET", GROUPS): groups(*OTHERS), ("POST", GROUPS): answer(201, OURS)})
    assert await gateway.ensure_runner_group(ORG) == 3
    assert json.loads(github.requests[-1].content) == {
        "name": "RISE RISC-V Runners",
        "visibility": "all",
        "allows_public_repositories": True,
    }


@pytest.mark.parametrize("status", [409, 422])
async def test_a_lost_race_uses_the_group_that_won(
    github: ScriptedGitHub, gateway: GitHubGateway, status: int
) -> None:
    github.answers(groups(*OTHERS), answer(status, {"message": "Name taken"}), groups(*OTHERS, OURS))
    assert await gateway.ensure_runner_group(ORG) == 3


@pytest.mark.parametrize("status", [403, 404, 422])
async def test_a_plan_without_groups_falls_back_to_the_default_group_and_says_so(
    github: ScriptedGitHub, gateway: GitHubGateway, clock: ManualClock, status: int
) -> None:
    github.serves(
        {("GET", GROUPS): groups(*OTHERS), ("POST", GROUPS): answer(status, {"message": "Upgrade"})}
    )
    with structlog.testing.capture_logs() as events:
        assert await gateway.ensure_runner_group(ORG) == 1
    assert [e["event"] for e in events] == ["auth_attempt.ok", "runner_group.unavailable"]
    asked = len(github.requests)
    assert await gateway.ensure_runner_group(ORG) == 1
    assert len(github.requests) == asked
    github.serves({("GET", GROUPS): groups(OURS)})
    await clock.advance(timedelta(hours=1))
    assert await gateway.ensure_runner_group(ORG) == 3


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (answer(409), GitHubConflict),
        (answer(500), GitHubUnavailable),
        (answer(403, {"message": "This installation has been suspended"}), InstallationSuspended),
        (answer(201, {"name": "no id"}), GitHubUnavailable),
    ],
)
async def test_a_group_that_cannot_be_created_for_another_reason_is_an_error_and_not_the_default_group(
    github: ScriptedGitHub, gateway: GitHubGateway, refused: httpx.Response, error: type[GitHubError]
) -> None:
    github.serves({("GET", GROUPS): groups(*OTHERS), ("POST", GROUPS): refused})
    with pytest.raises(error):
        await gateway.ensure_runner_group(ORG)
    github.serves({("GET", GROUPS): groups(OURS)})
    assert await gateway.ensure_runner_group(ORG) == 3


async def test_an_uninstalled_app_is_no_plan_without_groups(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.mint = lambda request: answer(404, {"message": "Not Found"})
    with pytest.raises(InstallationGone):
        await gateway.ensure_runner_group(ORG)


async def test_repositories_have_only_the_default_group(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    assert await gateway.ensure_runner_group(PERSON) == 1
    assert github.requests == []


@pytest.mark.parametrize(
    ("scope", "path", "group"),
    [
        (ORG, f"{RUNNERS}/generate-jitconfig", 3),
        (PERSON, "/repos/someone/project/actions/runners/generate-jitconfig", 1),
    ],
)
async def test_a_runner_is_registered_where_its_scope_says(
    github: ScriptedGitHub, gateway: GitHubGateway, scope: Scope, path: str, group: int
) -> None:
    jit = {"runner": a_runner(5, status="offline", runner_group_id=group), "encoded_jit_config": "c2VjcmV0"}
    github.serves({("POST", path): answer(201, jit)})
    made = await gateway.create_jit_runner(scope, "a-name", ("riscv", "rva23"), 3)
    body = json.loads(github.requests[0].content)
    assert body == {"name": "a-name", "runner_group_id": group, "labels": ["riscv", "rva23"]}
    assert made.runner == Runner(5, "rise-riscv-runner-000000005", False, False, group)
    assert made.config.reveal() == "c2VjcmV0"
    assert "c2VjcmV0" not in repr(made)


async def test_a_name_that_is_taken_is_a_conflict(github: ScriptedGitHub, gateway: GitHubGateway) -> None:
    github.answers(answer(409, {"message": "Already exists - A runner with the name *** already exists."}))
    with pytest.raises(GitHubConflict):
        await gateway.create_jit_runner(ORG, "a-name", ("riscv",), 3)


@pytest.mark.parametrize(("status", "error"), [(404, GitHubNotFound), (422, GitHubRefused)])
async def test_a_refused_jit_call_makes_the_group_be_looked_up_again(
    github: ScriptedGitHub, gateway: GitHubGateway, status: int, error: type[GitHubError]
) -> None:
    github.serves({("GET", GROUPS): groups(OURS), ("POST", f"{RUNNERS}/generate-jitconfig"): answer(status)})
    await gateway.ensure_runner_group(ORG)
    with pytest.raises(error):
        await gateway.create_jit_runner(ORG, "a-name", ("riscv",), 3)
    await gateway.ensure_runner_group(ORG)
    assert sent(github).count(f"GET {GROUPS}") == 2


async def test_an_organizations_runners_are_those_of_our_group(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    listed = runners(a_runner(1), a_runner(2, status="offline", busy=True, version="2.330.0"))
    github.serves({("GET", GROUPS): groups(OURS), ("GET", f"{GROUPS}/3/runners"): listed})
    assert await gateway.list_runners(ORG) == (
        Runner(1, "rise-riscv-runner-000000001", online=True, busy=False),
        Runner(2, "rise-riscv-runner-000000002", online=False, busy=True, version="2.330.0"),
    )


async def test_without_a_group_the_organizations_whole_list_is_read(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.serves(
        {
            ("GET", GROUPS): groups(*OTHERS),
            ("POST", GROUPS): answer(403, {"message": "Upgrade"}),
            ("GET", RUNNERS): runners(a_runner(1)),
        }
    )
    assert [runner.id for runner in await gateway.list_runners(ORG)] == [1]


async def test_a_group_that_was_deleted_is_an_error_and_looked_up_again(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.serves({("GET", GROUPS): groups(OURS)})
    for _ in range(2):
        with pytest.raises(GitHubNotFound):
            await gateway.list_runners(ORG)
    assert sent(github).count(f"GET {GROUPS}") == 2


async def test_every_page_is_read_along_githubs_own_links(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    link = f'<{API}/organizations/70/actions/runner-groups/3/runners?page=2>; rel="next"'
    github.answers(
        groups(OURS), runners(a_runner(1), a_runner(2), link=link), runners(a_runner(2), a_runner(3))
    )
    assert [runner.id for runner in await gateway.list_runners(ORG)] == [1, 2, 3]
    assert github.requests[-1].url.path == "/api/v3/organizations/70/actions/runner-groups/3/runners"


@pytest.mark.parametrize(
    "second", [answer(500), answer(404), answer(200, {"runners": None}), httpx.ReadTimeout("")]
)
async def test_a_list_with_a_broken_page_is_an_error_never_a_shorter_list(
    github: ScriptedGitHub, gateway: GitHubGateway, second: httpx.Response | Exception
) -> None:
    link = f'<{API}/orgs/example-org/actions/runners?page=2>; rel="next"'
    github.answers(groups(OURS), runners(a_runner(1), link=link), second)
    with pytest.raises(GitHubError):
        await gateway.list_runners(ORG)


async def test_a_full_page_without_a_link_to_the_rest_is_an_error(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    page = {"total_count": 150, "runners": [a_runner(number) for number in range(1, 101)]}
    github.answers(groups(OURS), answer(200, page))
    with pytest.raises(GitHubUnavailable, match="100 of 150"):
        await gateway.list_runners(ORG)


@pytest.mark.parametrize("target", ["https://evil.test/runners?page=2", f"{API}/orgs/example-org/x?page=2"])
async def test_links_to_another_host_or_in_a_circle_end_in_an_error(
    github: ScriptedGitHub, gateway: GitHubGateway, target: str
) -> None:
    github.answers(groups(OURS), runners(a_runner(1), link=f'<{target}>; rel="next"'))
    with pytest.raises(GitHubError):
        await gateway.list_runners(ORG)
    assert {request.url.host for request in github.requests} == {"github.test"}


async def test_a_page_served_from_memory_still_leads_to_the_next(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if "if-none-match" in request.headers:
            return httpx.Response(304)  # GitHub's 304s may come without Link
        if "page=2" in str(request.url):
            return runners(a_runner(2), etag='"two"')
        link = f'<{API}/repos/someone/project/actions/runners?page=2>; rel="next"'
        return runners(a_runner(1), link=link, etag='"one"')

    github.handler = handle
    for _ in range(2):
        assert [runner.id for runner in await gateway.list_runners(PERSON)] == [1, 2]


async def test_a_runner_is_found_by_its_whole_name_only(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.serves({("GET", RUNNERS): runners(a_runner(1, name="a-name-too"), a_runner(2, name="a-name"))})
    found = await gateway.find_runner(ORG, "a-name")
    assert found is not None
    assert found.id == 2
    assert await gateway.find_runner(ORG, "a-nam") is None
    assert github.requests[0].url.params["name"] == "a-name"


@pytest.mark.parametrize("status", [204, 404])
async def test_a_deleted_runner_is_gone_however_often(
    github: ScriptedGitHub, gateway: GitHubGateway, status: int
) -> None:
    github.answers(httpx.Response(status))
    await gateway.delete_runner(ORG, 4)
    assert sent(github) == [f"DELETE {RUNNERS}/4"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (answer(422, {"message": 'Bad request - Runner "x" is still running a job"'}), RunnerBusy),
        (answer(403, {"message": "No"}), GitHubForbidden),
        (answer(502), GitHubUnavailable),
    ],
)
async def test_a_runner_that_was_not_deleted_is_never_taken_for_gone(
    github: ScriptedGitHub, gateway: GitHubGateway, given: httpx.Response, error: type[GitHubError]
) -> None:
    github.answers(given)
    with pytest.raises(error):
        await gateway.delete_runner(ORG, 4)
    assert len(github.requests) == 1


async def test_deleting_for_an_uninstalled_app_is_not_success(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.mint = lambda request: answer(404, {"message": "Not Found"})
    with pytest.raises(InstallationGone):
        await gateway.delete_runner(ORG, 4)


async def test_a_personal_scope_without_a_repository_is_refused(gateway: GitHubGateway) -> None:
    with pytest.raises(GitHubRefused, match="personal account"):
        await gateway.list_runners(Scope("222", 9, PERSON.entity))
