"""The probes: health by the loop coming round, readiness by role."""

from datetime import timedelta

import httpx
import pytest

from tests.clocks import EPOCH as NOW
from tests.integration.web_pages.conftest import ReportedLoop
from tests.integration.web_pages.seeding import ago


@pytest.mark.parametrize(("silence", "status"), [(300, 200), (301, 503)])
async def test_health_fails_when_the_loop_has_not_come_round_for_five_minutes(
    browser: httpx.AsyncClient, loop_status: ReportedLoop, silence: int, status: int
) -> None:
    loop_status.report(last_iteration_at=NOW - timedelta(seconds=silence))
    assert (await browser.get("/health")).status_code == status


async def test_a_leader_that_never_came_round_is_unhealthy_after_five_minutes(
    browser: httpx.AsyncClient, loop_status: ReportedLoop
) -> None:
    loop_status.report(last_iteration_at=None, started_at=ago(minutes=4))
    assert (await browser.get("/health")).status_code == 200
    loop_status.report(started_at=ago(minutes=6))
    assert (await browser.get("/health")).status_code == 503


async def test_a_new_leader_has_five_minutes_from_when_it_leads(
    browser: httpx.AsyncClient, loop_status: ReportedLoop
) -> None:
    loop_status.report(last_iteration_at=None, started_at=ago(days=9), role_since=ago(minutes=4))
    assert (await browser.get("/health")).status_code == 200


async def test_one_that_stands_by_is_healthy_and_ready(
    browser: httpx.AsyncClient, loop_status: ReportedLoop
) -> None:
    loop_status.report(leads=False, last_iteration_at=None, iterations=0)
    assert (await browser.get("/health")).status_code == 200
    answer = await browser.get("/ready")
    assert answer.status_code == 200
    assert answer.json()["role"] == "standby"


async def test_ready_tells_how_the_loop_is_doing(
    browser: httpx.AsyncClient, loop_status: ReportedLoop
) -> None:
    loop_status.report(last_error="GitHubUnavailable: timeout", unknown=("pods cannot be watched: 503",))
    assert (await browser.get("/ready")).json() == {
        "role": "leader",
        "started": "2026-03-01T11:00:00Z",
        "iterations": 240,
        "last_iteration": "2026-03-01T11:59:56Z",
        "last_error": "GitHubUnavailable: timeout",
        "unknown": ["pods cannot be watched: 503"],
    }


async def test_metrics_are_what_the_registry_renders(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/metrics")
    assert answer.text == "switchboard_leader 1.0\n"
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"
