"""Jobs, runs, installations and deliveries as they are read from answers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from controller.domain.sightings import DeliverySighting, InstallationSighting, JobSighting, RunSighting
from controller.errors import GitHubNotFound, GitHubUnavailable, InstallationGone
from controller.gateways.github import GitHubGateway
from tests.clocks import EPOCH
from tests.unit.gateways_github.scripted import API, ORG, ScriptedGitHub, a_job, answer

REPO = "example-org/llvm"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def seen(github: ScriptedGitHub, gateway: GitHubGateway, **fields: Any) -> JobSighting:
    github.answers(answer(200, a_job(**fields)))
    return await gateway.get_job(ORG, REPO, 1)


async def test_a_queued_job_has_not_started_whatever_started_at_says(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    assert await seen(github, gateway) == JobSighting(
        job_id=1,
        run_id=10,
        status="queued",
        conclusion=None,
        runner_name=None,
        labels=("ubuntu-24.04-riscv",),
        created_at=at("2026-03-01T12:00:00"),
        started_at=None,
        completed_at=None,
        name="build",
        html_url="https://github.test/job/1",
    )


@pytest.mark.parametrize("status", ["in_progress", "completed"])
async def test_a_started_job_has_a_start_and_a_runner(
    github: ScriptedGitHub, gateway: GitHubGateway, status: str
) -> None:
    job = await seen(github, gateway, status=status, runner_id=4, runner_name="a-name")
    assert (job.started_at, job.runner_name) == (at("2026-03-01T12:00:01"), "a-name")


@pytest.mark.parametrize(
    "runner",
    [
        {"runner_id": None, "runner_name": None},
        {"runner_id": 0, "runner_name": ""},
        {"runner_id": 0, "runner_name": "ghost"},
        {"runner_id": None, "runner_name": ""},
        {"runner_id": 4, "runner_name": ""},
        {"runner_id": 4, "runner_name": None},
    ],
)
async def test_no_runner_is_said_in_many_ways(
    github: ScriptedGitHub, gateway: GitHubGateway, runner: dict[str, Any]
) -> None:
    assert (await seen(github, gateway, **runner)).runner_name is None


async def test_unknown_statuses_and_conclusions_pass_through(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    job = await seen(github, gateway, status="meditating", conclusion="enlightened")
    assert (job.status, job.conclusion, job.started_at) == ("meditating", "enlightened", None)


async def test_optional_fields_may_be_missing_and_times_in_any_zone(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    job = a_job(created_at="2026-03-01T14:00:00.5+02:00", labels=None)
    for key in ("run_attempt", "html_url", "name", "completed_at", "runner_id", "runner_name"):
        del job[key]
    github.answers(answer(200, job))
    read = await gateway.get_job(ORG, REPO, 1)
    assert read.created_at == at("2026-03-01T12:00:00.5")
    assert (read.run_attempt, read.labels, read.name) == (1, (), "")


@pytest.mark.parametrize("moment", ["2026-03-01T12:00:00", "yesterday", 5, "0001-01-01T00:00:00+14:00"])
async def test_a_time_that_is_none_is_an_outage(
    github: ScriptedGitHub, gateway: GitHubGateway, moment: object
) -> None:
    with pytest.raises(GitHubUnavailable):
        await seen(github, gateway, created_at=moment)


async def test_a_job_that_is_not_there_is_not_found(gateway: GitHubGateway) -> None:
    with pytest.raises(GitHubNotFound):
        await gateway.get_job(ORG, REPO, 1)


async def test_the_jobs_of_a_run_are_those_of_its_latest_attempt_over_all_pages(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    link = f'<{API}/repositories/5/actions/runs/10/jobs?page=2>; rel="next"'
    github.answers(
        answer(200, {"total_count": 2, "jobs": [a_job(id=1)]}, link=link),
        answer(200, {"total_count": 2, "jobs": [a_job(id=2)]}),
    )
    assert [job.job_id for job in await gateway.list_run_jobs(ORG, REPO, 10)] == [1, 2]
    assert github.requests[0].url.query == b"filter=latest&per_page=100"


async def test_runs_are_read_with_whatever_status_they_have(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, {"id": 10, "status": None, "conclusion": "startup_failure"}))
    assert await gateway.get_run(ORG, REPO, 10) == RunSighting(10, None, "startup_failure")
    github.answers(answer(200, {"total_count": 1, "workflow_runs": [{"id": 10, "status": "queued"}]}))
    assert await gateway.list_active_runs(ORG, REPO) == (RunSighting(10, "queued", None),)
    assert [each.url.params.get("status") for each in github.requests[1:]] == ["queued", "in_progress"]


@pytest.mark.parametrize("total", [100, 1_001])
async def test_more_active_runs_than_github_lists_are_no_reason_to_look_at_none(
    github: ScriptedGitHub, gateway: GitHubGateway, total: int
) -> None:
    runs = [{"id": number, "status": "queued"} for number in range(100)]
    github.answers(
        answer(200, {"total_count": total, "workflow_runs": runs}),
        answer(200, {"total_count": 0, "workflow_runs": []}),
    )
    assert len(await gateway.list_active_runs(ORG, REPO)) == 100


async def test_a_list_of_runs_without_its_rest_is_unknown(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    runs = [{"id": number, "status": "queued"} for number in range(100)]
    github.answers(answer(200, {"total_count": 150, "workflow_runs": runs}))
    with pytest.raises(GitHubUnavailable):
        await gateway.list_active_runs(ORG, REPO)


@pytest.mark.parametrize(
    ("head", "foreign"), [({"id": 5}, False), ({"id": 6}, True), (None, True)], ids=["own", "fork", "deleted"]
)
async def test_a_run_whose_head_is_another_repository_is_foreign(
    github: ScriptedGitHub, gateway: GitHubGateway, head: dict[str, int] | None, foreign: bool
) -> None:
    run = {"id": 10, "status": "queued", "event": "pull_request", "repository": {"id": 5}}
    github.answers(answer(200, run | {"head_repository": head}))
    assert (await gateway.get_run(ORG, REPO, 10)).foreign is foreign


async def test_an_installation_is_read_with_its_permissions(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    body = {"id": 7, "suspended_at": "2026-03-01T12:00:00Z", "permissions": {"actions": "read"}}
    github.answers(answer(200, body))
    expected = InstallationSighting(7, "111", True, {"actions": "read"})
    assert await gateway.get_installation("111", 7) == expected
    assert await gateway.find_repo_installation("111", REPO) == expected
    assert github.mints == []


async def test_an_installation_that_is_not_there_is_gone(gateway: GitHubGateway) -> None:
    with pytest.raises(InstallationGone):
        await gateway.get_installation("111", 7)
    with pytest.raises(InstallationGone):
        await gateway.find_repo_installation("111", REPO)


def a_delivery(number: int, minutes_ago: int, **other: Any) -> dict[str, Any]:
    return {
        "id": number,
        "guid": f"guid-{number}",
        "event": "workflow_job",
        "action": "queued",
        "delivered_at": (EPOCH - timedelta(minutes=minutes_ago)).isoformat(),
        "status_code": 200,
        "installation_id": 7,
    } | other


async def test_deliveries_are_read_page_by_page_until_they_are_too_old(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    def page(number: int, *found: dict[str, Any]) -> httpx.Response:
        return answer(200, list(found), link=f'<{API}/app/hook/deliveries?cursor=v{number}>; rel="next"')

    github.answers(
        page(1, a_delivery(9, 1), a_delivery(8, 2, status_code=502)),
        page(2, a_delivery(8, 2, status_code=502), a_delivery(7, 10), a_delivery(6, 11)),
        page(3, a_delivery(5, 12)),
    )
    found = await gateway.list_deliveries("111", EPOCH - timedelta(minutes=10))
    assert [(each.id, each.ok) for each in found] == [(9, True), (8, False), (7, True)]
    assert len(github.requests) == 2
    assert github.requests[1].url.params["cursor"] == "v1"


@pytest.mark.parametrize("code", [None, 0, 302, 404, 500])
async def test_a_delivery_counts_as_received_only_with_a_2xx(
    github: ScriptedGitHub, gateway: GitHubGateway, code: int | None
) -> None:
    github.answers(answer(200, [a_delivery(1, 1, status_code=code)]))
    (found,) = await gateway.list_deliveries("111", EPOCH - timedelta(hours=1))
    assert not found.ok


@pytest.mark.parametrize("payload", [{"action": "queued"}, '{"action": "queued"}'])
async def test_a_payload_comes_as_an_object_or_as_text(
    github: ScriptedGitHub, gateway: GitHubGateway, payload: object
) -> None:
    github.answers(answer(200, a_delivery(9, 0) | {"request": {"headers": {}, "payload": payload}}))
    assert await gateway.get_delivery("111", 9) == DeliverySighting(
        9, "guid-9", "workflow_job", "queued", EPOCH, True, 7, {"action": "queued"}
    )


async def test_a_delivery_may_have_no_payload_any_more(
    github: ScriptedGitHub, gateway: GitHubGateway
) -> None:
    github.answers(answer(200, a_delivery(9, 0) | {"request": {"headers": None, "payload": None}}))
    assert (await gateway.get_delivery("111", 9)).payload is None


@pytest.mark.parametrize("request_part", [None, {"payload": "{"}, {"payload": [1]}, {"payload": "5"}])
async def test_a_payload_that_cannot_be_read_is_an_outage(
    github: ScriptedGitHub, gateway: GitHubGateway, request_part: object
) -> None:
    github.answers(answer(200, a_delivery(9, 0) | {"request": request_part}))
    with pytest.raises(GitHubUnavailable):
        await gateway.get_delivery("111", 9)
