"""A job whose runner is lost says so, while GitHub still takes it to be running."""

import re
from html import unescape

import httpx
import pytest

from controller.domain.reasons import EXPLANATIONS, Reason
from tests.integration.api.test_queue_and_explain import command, told
from tests.integration.web_pages.seeding import Seed, ago

RUNNER = "rise-riscv-runner-abcdefghi"


async def a_started_job(seed: Seed, status: str, **worker: object) -> None:
    """A job that GitHub takes to be running, on a worker in this state."""
    await seed.job(1, "running", started_at=ago(minutes=4), runner_name=RUNNER)
    await seed.worker(RUNNER, status, node="board-3", **worker)


@pytest.mark.parametrize("reason", [Reason.NODE_UNREACHABLE, Reason.POD_MISSING])
async def test_a_started_job_says_that_its_runner_was_lost(
    stranger: httpx.AsyncClient, seed: Seed, database_url: str, reason: Reason
) -> None:
    await a_started_job(seed, "failed", failure_reason=reason.value, completed_at=ago(minutes=1))
    known = EXPLANATIONS[reason]
    explained = await told(stranger, 1)
    assert (explained["state"], explained["reason"]) == ("running", reason.value)
    assert (explained["sentence"], explained["next_step"]) == (known.sentence, known.next_step)
    assert explained["detail"] == {"node": "board-3", "worker": RUNNER}
    page = unescape(re.sub(r"<[^>]*>", "", (await stranger.get("/jobs/1")).text))
    assert known.next_step.replace("`", "") in page
    assert "  node: board-3" in (await command(database_url, "1"))[1]


async def test_a_job_on_a_living_runner_runs(stranger: httpx.AsyncClient, seed: Seed) -> None:
    await a_started_job(seed, "running")
    assert (await told(stranger, 1))["sentence"] == f"It runs on {RUNNER}."


async def test_an_earlier_worker_that_failed_is_not_the_one_that_runs_it(
    stranger: httpx.AsyncClient, seed: Seed
) -> None:
    await a_started_job(seed, "running")
    await seed.worker(f"{RUNNER}2", "failed", made_for=1, failure_reason="pod_failed")
    assert (await told(stranger, 1))["reason"] is None


async def test_of_a_private_job_only_the_reason_is_told(stranger: httpx.AsyncClient, seed: Seed) -> None:
    await seed.job(1, "running", started_at=ago(minutes=4), runner_name=RUNNER, private=True)
    await seed.worker(RUNNER, "failed", node="board-3", failure_reason="node_unreachable")
    explained = await told(stranger, 1)
    assert (explained["reason"], explained["detail"]) == ("node_unreachable", {})
