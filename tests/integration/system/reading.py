"""Reading back what a system decided: rows, events, metrics, and what GitHub was asked."""

import re
from collections.abc import Awaitable, Callable
from html import unescape
from typing import Any

import httpx
from starlette.applications import Starlette

from controller.app import print_explanation
from controller.domain.reasons import EXPLANATIONS, Skip
from controller.gateways.postgres.controls import ControlStore
from controller.gateways.postgres.pages import PageStore
from controller.web.admin import Admin
from controller.web.api import api_routes
from controller.web.reader import PageDeps
from controller.web.routes import page_routes
from tests.systems import System

FAILURES = "switchboard_worker_failures_total"
SKIPS = "switchboard_skips"


async def failed_worker(system: System, reason: str) -> dict[str, Any]:
    """The one worker that failed for this reason; its event and the metric must say so too."""
    (row,) = await system.rows("SELECT * FROM workers WHERE failure_reason = %(reason)s", reason=reason)
    assert row["status"] == "failed"
    assert row["completed_at"] is not None
    (event,) = await system.rows(
        "SELECT detail FROM events WHERE kind = 'worker.failed' AND worker = %(name)s", name=row["name"]
    )
    assert event["detail"]["reason"] == reason
    assert system.metrics.registry.get_sample_value(FAILURES, {"reason": reason}) == 1
    return row


async def waiting_job(system: System, job_id: int, reason: str) -> dict[str, Any]:
    """The job, which must wait for this reason by its row, the metric, the page, the API and the command."""
    (row,) = await system.rows("SELECT * FROM jobs WHERE job_id = %(job_id)s", job_id=job_id)
    assert (row["status"], row["skip_reason"]) == ("pending", reason)
    assert row["skip_since"] is not None
    await system.turn()  # gauges show the rows as an iteration found them
    assert (system.metrics.registry.get_sample_value(SKIPS, {"reason": reason}) or 0) >= 1
    await _told_everywhere(system, job_id, Skip(reason))
    return row


async def _told_everywhere(system: System, job_id: int, reason: Skip) -> None:
    """Page, API and command say the same of a waiting job."""
    admin = Admin(None, system.clock)
    deps = PageDeps(
        PageStore(system.database),
        system.clock,
        system.controller.loop,
        system.file,
        system.metrics.render,
        admin,
    )
    app = Starlette(routes=[*api_routes(deps, admin, ControlStore(system.database), {}), *page_routes(deps)])
    address = "http://switchboard.test"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=address) as browser:
        explained = (await browser.get(f"/api/jobs/{job_id}/explain")).json()
        page = (await browser.get(f"/jobs/{job_id}")).text
    read = unescape(re.sub(r"<[^>]*>", "", page))
    assert explained["figures"] in read
    said: list[str] = []
    assert await print_explanation(system.settings, str(job_id), said.append) == 0
    assert explained["reason"] == reason.value
    assert explained["sentence"] == EXPLANATIONS[reason].sentence
    assert explained["sentence"] in read
    assert explained["next_step"].replace("`", "") in read
    assert f"({reason.value})" in "\n".join(said)
    assert explained["sentence"] in "\n".join(said)
    assert explained["figures"] in "\n".join(said)
    assert explained["next_step"] in "\n".join(said)


async def step_until(system: System, done: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Step until the rows say so; a test that waits for ever fails here."""
    for _ in range(120):
        if await done():
            return
        await system.step(seconds)
    raise AssertionError("it did not come to pass")


def any_failed(system: System) -> Callable[[], Awaitable[bool]]:
    """Whether a worker has failed."""

    async def failed() -> bool:
        return bool(await system.rows("SELECT 1 FROM workers WHERE status = 'failed'"))

    return failed


def all_completed(system: System, jobs: int) -> Callable[[], Awaitable[bool]]:
    """Whether there are so many rows of jobs and all are completed."""

    async def completed() -> bool:
        return await system.statuses() == {"completed": jobs}

    return completed


def asked(system: System, part: str) -> list[str]:
    """The requests to GitHub whose operation holds this part."""
    return [each.operation for each in system.github.sim.requests if part in each.operation]


def jit_calls(system: System) -> int:
    """How many runners were asked for."""
    return len(asked(system, "generate-runner-jitconfig"))


def lost_jobs(system: System) -> list[int]:
    """Jobs that ended otherwise than their workflow would have: their runner was taken from them."""
    return [
        job.job_id
        for job in system.github.sim.ledger.jobs()
        if job.conclusion not in (None, "success", "cancelled", "skipped")
    ]


async def lose_leadership(system: System) -> None:
    """All connections to the database break; the next iteration stands down, the one after leads again."""
    cut = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
    """
    await system.rows(cut)
    before = system.controller.loop.snapshot().iterations

    async def led_again() -> bool:
        return system.controller.loop.snapshot().iterations > before

    await step_until(system, led_again, 0)
