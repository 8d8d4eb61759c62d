"""Text from outside is text, and private repositories stay private, on every page and in every twin."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from controller.domain.reasons import Skip
from tests.clocks import EPOCH as NOW
from tests.integration.web_pages.conftest import TOKEN
from tests.integration.web_pages.seeding import Seed, ago

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> 🦖 {{ 7*7 }}"
PAGES = (
    "/",
    "/usage",
    "/history",
    "/workers",
    "/boards",
    "/jobs/1",
    "/jobs/2",
    "/jobs/3",
    "/jobs/4",
    "/workers/w-1",
)
SECRET = "tops3cret"  # in every text that came from the private repository


async def seed_hostile(seed: Seed) -> None:
    long = HOSTILE * 200  # more than 10 kB
    everywhere = {"entity_name": HOSTILE, "repo": HOSTILE, "labels": [HOSTILE]}
    await seed.job(
        1,
        "pending",
        name=long,
        html_url="javascript:alert(1)",
        skip_reason=HOSTILE,
        skip_detail={HOSTILE: HOSTILE, "workers": [HOSTILE]},
        pool=HOSTILE,
        **everywhere,
    )
    await seed.job(2, "failed", name=HOSTILE, failure_info={"reason": HOSTILE, "message": long}, **everywhere)
    await seed.job(3, "running", name=HOSTILE, runner_name="w-1", started_at=ago(minutes=1), **everywhere)
    info = {
        "message": long,
        "containers": [{"name": HOSTILE, "exit_code": 1, "reason": HOSTILE, "message": HOSTILE}, HOSTILE],
        "log_tail": long,
        "events": [{"reason": HOSTILE, "message": HOSTILE, "last_time": HOSTILE, "count": HOSTILE}],
    }
    await seed.worker(
        "w-1",
        "failed",
        completed_at=NOW,
        failure_reason=HOSTILE,
        failure_info=info,
        made_for=1,
        node=HOSTILE,
        image=HOSTILE,
        **everywhere,
    )
    await seed.board("node-1", HOSTILE, board=HOSTILE, worker="w-1")
    await seed.hold("pool", HOSTILE, note=HOSTILE, until=NOW + timedelta(hours=1))
    detail = {HOSTILE: long, "private": False, "labels": [HOSTILE], "nearest": [HOSTILE]}
    for job_id, outcome in ((1, HOSTILE), (4, "ignored_no_label")):
        await seed.event(HOSTILE, outcome=outcome, job_id=job_id, worker="w-1", detail=detail)


@pytest.mark.parametrize("page", PAGES)
async def test_hostile_text_is_shown_as_text(browser: httpx.AsyncClient, seed: Seed, page: str) -> None:
    await seed_hostile(seed)
    answer = await browser.get(page)
    assert answer.status_code == 200
    assert "&lt;script&gt;alert(1)" in answer.text
    assert "<script>alert" not in answer.text
    assert "<img src=x" not in answer.text
    assert "javascript:" not in answer.text
    assert "🦖" in answer.text
    assert "{{ 7*7 }}" in answer.text


async def seed_private(seed: Seed) -> None:
    person = {"entity_id": 9, "entity_name": "kim", "entity_type": "User", "repo": f"kim/{SECRET}"}
    hidden = {
        "name": SECRET,
        "html_url": f"https://github.com/kim/{SECRET}",
        "private": True,
        "run_id": 31337,
    }
    held = {
        "skip_reason": "held",
        "skip_detail": {"note": SECRET, "scope": "pool", "target": "vector", "why": "pause"},
    }
    await seed.job(1, "pending", **person, **hidden, **held)
    await seed.job(2, "failed", failure_info={"reason": "not_found", "message": SECRET}, **person, **hidden)
    await seed.job(3, "running", runner_name="w-1", started_at=ago(minutes=1), **person, **hidden)
    info = {
        "message": SECRET,
        "containers": [{"name": "runner", "exit_code": 3, "message": SECRET}],
        "log_tail": SECRET,
        "events": [{"reason": "Failed", "message": SECRET}],
        "other": SECRET,
    }
    broken = {"failure_reason": "pod_failed", "failure_info": info, "completed_at": NOW}
    await seed.worker("w-1", "failed", made_for=3, **broken, **person)
    await seed.worker("w-2", "running", **person)
    await seed.board("node-1", "busy", worker="w-1")
    detail = {"repo": f"kim/{SECRET}", "private": True, "labels": [SECRET], "nearest": ["ubuntu-24.04-riscv"]}
    await seed.event("workflow_job.queued", outcome="job_stored", job_id=1, detail=detail)
    await seed.event("workflow_job.queued", outcome="ignored_no_label", job_id=4, detail=detail)
    await seed.event("worker.failed", source="controller", worker="w-1", detail={"log": SECRET})


@pytest.mark.parametrize("page", [*PAGES, "/workers/w-2"])
async def test_private_repositories_show_entity_and_id_only(
    browser: httpx.AsyncClient, seed: Seed, page: str
) -> None:
    await seed_private(seed)
    for address in (page, ("/overview" if page == "/" else page) + ".json"):
        answer = await browser.get(address)
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert "31337" not in answer.text


async def test_private_jobs_still_tell_who_waits_and_why(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed_private(seed)
    page = (await browser.get("/jobs/1")).text
    assert "kim" in page
    assert "#1" in page
    assert "held back, for the reason shown" in page
    job = (await browser.get("/jobs/1.json")).json()["job"]
    assert job["reason"]["detail"] == {"scope": "pool", "target": "vector", "why": "pause"}
    assert "Pool vector is paused." in page
    assert "exit code <b>3</b>" in (await browser.get("/workers/w-1")).text


async def test_a_public_job_is_shown_with_its_repository_and_address(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, "pending")
    page = (await browser.get("/jobs/1")).text
    assert "example-org/llvm" in page
    assert 'href="https://github.com/example-org/llvm/actions/runs/77/job/1"' in page


# What is stored with each reason: everything harmless, and beside it what a repository might say.
HARMLESS_PARTS: dict[Skip, tuple[dict[str, Any], str]] = {
    Skip.HELD: ({"scope": "entity", "target": "kim", "why": "breaker"}, "Entity kim is held after failures."),
    Skip.BACKING_OFF: ({"attempts": 2, "last_failure": "pod_failed"}, "container ended with an error"),
    Skip.GAVE_UP: ({"attempts": 3, "last_failure": "provision_failed"}, "3 attempts failed so far."),
    Skip.NO_POOL: ({"nearest": ["ubuntu-24.04-riscv"]}, "Nearest: [ubuntu-24.04-riscv]."),
    Skip.NOT_PICKED_UP: ({"workers": ["rise-riscv-runner-aaaaaaaaa"]}, "Idle: rise-riscv-runner-aaaaaaaaa."),
    Skip.RUNNER_ON_ITS_WAY: ({"workers": 1, "stages": {"pod": 1}}, "1 runner: 1 pod made."),
    Skip.ENTITY_AT_MAX_WORKERS: ({"max_workers": 4}, "It may have 4 runners at once."),
    Skip.NO_FREE_SLOTS: ({"board": "b", "boards": 2, "states": {"busy": 2}}, "2 boards: 2 busy."),
}


@pytest.mark.parametrize("skip", HARMLESS_PARTS)
async def test_private_jobs_tell_all_that_is_harmless_and_nothing_else(
    browser: httpx.AsyncClient, seed: Seed, skip: Skip
) -> None:
    parts, words = HARMLESS_PARTS[skip]
    theirs = {
        "repo": SECRET,
        "name": SECRET,
        "labels": [SECRET],
        "html_url": SECRET,
        "message": SECRET,
        "log": SECRET,
    }
    await seed.job(1, private=True, skip_reason=skip.value, skip_detail={**parts, **theirs})
    story = await browser.get("/jobs/1.json")
    assert story.json()["job"]["reason"]["detail"] == parts
    assert story.json()["explanation"]["detail"] == parts
    page = (await browser.get("/jobs/1")).text
    assert words in page
    assert SECRET not in page + story.text


@pytest.mark.parametrize(
    ("fields", "hidden"),
    [
        ({"online_at": ago(minutes=3)}, True),
        ({}, False),  # it never was online, so no job was ever given to it
        ({"online_at": ago(minutes=3), "entity_type": "User", "entity_id": 9, "repo": "kim/open"}, False),
    ],
)
async def test_what_an_unknown_job_wrote_is_hidden_until_somebody_says_whose_it_was(
    browser: httpx.AsyncClient, seed: Seed, fields: dict[str, Any], hidden: bool
) -> None:
    await seed.job(1, "completed", **{name: fields[name] for name in fields if name != "online_at"})
    info = {"log_tail": SECRET, "message": SECRET, "events": [{"reason": "Failed", "message": SECRET}]}
    broken = {"failure_reason": "pod_failed", "failure_info": info, "completed_at": NOW}
    await seed.worker("w-1", "failed", made_for=1, **broken, **fields)
    await seed.event("worker.failed", source="controller", worker="w-1", detail={"log": SECRET})
    for address in (
        "/workers/w-1",
        "/workers/w-1.json",
        "/workers",
        "/workers.json",
        "/jobs/1",
        "/jobs/1.json",
        "/",
    ):
        assert (SECRET not in (await browser.get(address)).text) is hidden, address
        assert SECRET in (await browser.get(address, headers={"Authorization": f"Bearer {TOKEN}"})).text
