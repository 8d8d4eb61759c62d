"""The queue as list and page, and the one explanation that everybody gives."""

import re
from html import unescape
from typing import Any

import httpx
import pytest

from controller.app import print_explanation
from controller.domain.reasons import EXPLANATIONS, Skip
from controller.ports import Secret
from controller.settings import File, Settings
from controller.web.wording import in_figures
from tests.integration.web_pages.conftest import SETTINGS
from tests.integration.web_pages.seeding import Seed, ago
from tests.integration.web_pages.test_privacy_and_text import seed_hostile


async def fill(seed: Seed) -> None:
    """A job of every status, of two owners."""
    await seed.job(1, skip_reason="no_free_slots", skip_since=ago(minutes=3))
    await seed.job(2, created_at=ago(minutes=20))
    await seed.job(3, "running", started_at=ago(minutes=1), runner_name="rise-riscv-runner-abcdefghi")
    await seed.job(4, "failed", completed_at=ago(minutes=2), failure_info={"reason": "not_found"})
    await seed.job(5, "completed", completed_at=ago(minutes=2), conclusion="success")
    await seed.job(6, entity_id=600, entity_name="Other", created_at=ago(minutes=1))


async def ids(client: httpx.AsyncClient, address: str) -> list[int]:
    """The jobs that an address lists."""
    return [row["job_id"] for row in (await client.get(address)).json()]


async def test_the_queue_is_what_waits_runs_and_was_lost(stranger: httpx.AsyncClient, seed: Seed) -> None:
    await fill(seed)
    assert await ids(stranger, "/api/queue") == [2, 1, 6, 3, 4]
    assert await ids(stranger, "/api/queue?status=running,failed") == [3, 4]
    assert await ids(stranger, "/api/queue?status=completed") == [5]
    assert await ids(stranger, "/api/queue?entity=OTHER") == [6]
    assert await ids(stranger, "/api/queue?entity=600&status=pending") == [6]
    assert await ids(stranger, "/api/queue?entity=nobody") == []


async def test_the_queue_comes_in_slices(stranger: httpx.AsyncClient, seed: Seed) -> None:
    await fill(seed)
    answer = await stranger.get("/api/queue?per_page=2&page=2")
    assert [row["job_id"] for row in answer.json()] == [6, 3]
    assert answer.headers["Link"].count("rel=") == 3
    for bad in ("page=-1", "per_page=1e9", "start=yesterday", "status=lost", "stauts=failed"):
        refused = await stranger.get(f"/api/queue?{bad}")
        assert refused.status_code == 400
        assert refused.json()["message"].endswith(".")


async def test_the_page_shows_the_same_jobs_live_and_its_twin_the_holds_too(
    stranger: httpx.AsyncClient, seed: Seed
) -> None:
    await fill(seed)
    await seed.hold("pool", "vector", note="new firmware")
    await seed.hold("entity", "other")
    page = (await stranger.get("/queue")).text
    assert 'data-refresh="3"' in page
    for job_id in (1, 2, 3, 4, 6):
        assert f'href="/jobs/{job_id}"' in page
    assert 'href="/jobs/5"' not in page
    assert "new firmware" in page
    assert "/api/pools/vector/resume" in page
    assert "/api/entities/Other/resume" in page
    twin = (await stranger.get("/queue.json")).json()
    assert [row["job_id"] for row in twin["jobs"]] == [2, 1, 6, 3, 4]
    assert [hold["target"] for hold in twin["holds"]] == ["other", "vector"]


async def test_an_empty_queue_says_where_to_look(stranger: httpx.AsyncClient) -> None:
    assert "Nothing waits" in (await stranger.get("/queue")).text


async def command(database_url: str, job: str) -> tuple[int, list[str]]:
    """What `switchboard explain` prints, and its exit code."""
    settings = Settings(file=File.model_validate(SETTINGS), database_url=Secret(database_url))
    said: list[str] = []
    code = await print_explanation(settings, job, said.append)
    return code, "\n".join(said).splitlines()


async def told(client: httpx.AsyncClient, job_id: int) -> dict[str, Any]:
    """What the API explains; the page and its twin must say the same."""
    explained: dict[str, Any] = (await client.get(f"/api/jobs/{job_id}/explain")).json()
    twin = (await client.get(f"/jobs/{job_id}.json")).json()
    assert twin["explanation"] == explained
    return explained


@pytest.mark.parametrize("skip", list(Skip))
async def test_every_skip_reason_is_told_in_the_words_of_the_table(
    stranger: httpx.AsyncClient, seed: Seed, database_url: str, skip: Skip
) -> None:
    await seed.job(1, skip_reason=skip.value, skip_since=ago(minutes=3), skip_detail={"board": "rv1"})
    explained = await told(stranger, 1)
    known = EXPLANATIONS[skip]
    assert explained.pop("figures") == in_figures(skip.value, {"board": "rv1"})
    assert explained == {
        "job_id": 1,
        "state": "pending",
        "reason": skip.value,
        "sentence": known.sentence,
        "next_step": known.next_step,
        "since": "2026-03-01T11:57:00Z",
        "detail": {"board": "rv1"},
        "message": "",
    }
    assert known.sentence in unescape((await stranger.get("/jobs/1")).text)
    for asked in ("1", "https://github.com/example-org/llvm/actions/runs/77/job/1?pr=3"):
        assert await command(database_url, asked) == (
            0,
            [
                f"Job 1 is pending ({skip.value}).",
                known.sentence,
                "  board: rv1",
                "  since: 2026-03-01T11:57:00Z",
                f"→ {known.next_step}",
            ],
        )


async def test_a_job_we_ignored_is_answered_from_its_events(stranger: httpx.AsyncClient, seed: Seed) -> None:
    detail = {"labels": ["riscv", "big"], "nearest": ["riscv-rvv"], "private": False}
    await seed.event("workflow_job.queued", job_id=9, outcome="ignored_no_label", detail=detail)
    explained = await told(stranger, 9)
    assert (explained["state"], explained["reason"]) == ("ignored", "ignored_no_label")
    assert explained["sentence"] == "Your labels [riscv, big] match no pool. Nearest: [riscv-rvv]."
    assert explained["sentence"] in (await stranger.get("/jobs/9")).text


@pytest.mark.parametrize("outcome", ["not_allowed", "ignored_no_app", "job_not_found", "ignored_action"])
async def test_every_other_way_to_be_ignored_has_its_words(
    stranger: httpx.AsyncClient, seed: Seed, outcome: str
) -> None:
    await seed.event("workflow_job.queued", job_id=9, outcome=outcome, detail={"private": False})
    explained = await told(stranger, 9)
    assert explained["reason"] == outcome
    assert explained["sentence"].endswith(".")
    assert explained["next_step"]


async def test_of_a_private_repository_a_stranger_learns_what_is_harmless_and_an_admin_all(
    stranger: httpx.AsyncClient, admin: httpx.AsyncClient, seed: Seed
) -> None:
    secret = {"until": "2026-03-01T13:00:00+00:00", "target": "rv1", "note": "of project x"}
    await seed.job(1, private=True, skip_reason="held", skip_detail=secret)
    detail = {"labels": ["project-x"], "private": True}
    await seed.event("workflow_job.queued", job_id=9, outcome="ignored_no_label", detail=detail)
    assert (await told(stranger, 1))["detail"] == {"until": secret["until"], "target": "rv1"}
    assert "project-x" not in str(await told(stranger, 9))
    assert (await admin.get("/api/jobs/1/explain")).json()["detail"] == secret
    assert "project-x" in (await admin.get("/api/jobs/9/explain")).text


@pytest.mark.parametrize("job", ["7", "x", "https://github.com/a/b/actions/runs/5", ""])
async def test_the_command_fails_for_what_is_no_job_or_was_never_delivered(
    database_url: str, job: str
) -> None:
    code, said = await command(database_url, job)
    assert code == 1
    assert said


async def test_the_command_answers_for_ignored_jobs_too(database_url: str, seed: Seed) -> None:
    detail = {"labels": ["riscv"], "nearest": ["riscv-rvv"], "private": True}
    await seed.event("workflow_job.queued", job_id=9, outcome="ignored_no_label", detail=detail)
    code, said = await command(database_url, "9")
    assert code == 0
    assert "Your labels [riscv] match no pool. Nearest: [riscv-rvv]." in said


@pytest.mark.parametrize("job", ["7", "x", "-1", "0", str(2**63), "1" * 40])
async def test_a_job_that_was_never_delivered_is_404_with_advice(
    stranger: httpx.AsyncClient, job: str
) -> None:
    answer = await stranger.get(f"/api/jobs/{job}/explain")
    assert answer.status_code == 404
    assert "GitHub App" in answer.json()["message"]


@pytest.mark.parametrize(
    ("status", "fields", "words"),
    [
        ("pending", {"seen_at": ago(seconds=5)}, "about to be made"),
        ("pending", {"mark": "gave_up"}, "not tried again"),
        ("pending", {"skip_reason": "invented_tomorrow"}, "Invented tomorrow."),
        ("running", {"runner_name": "rise-riscv-runner-abcdefghi"}, "runs on rise-riscv-runner-abcdefghi"),
        ("completed", {"conclusion": "timed_out"}, "finished it: timed out"),
        ("failed", {"failure_info": {"reason": "stuck_queued", "message": "m"}}, "left the job queued"),
    ],
)
async def test_every_state_has_its_words(
    stranger: httpx.AsyncClient, seed: Seed, status: str, fields: dict[str, Any], words: str
) -> None:
    await seed.job(1, status, **fields)
    explained = await told(stranger, 1)
    assert explained["state"] == status
    assert words in explained["sentence"]


async def test_hostile_text_in_the_queue_is_shown_as_text(stranger: httpx.AsyncClient, seed: Seed) -> None:
    await seed_hostile(seed)
    page = (await stranger.get("/queue")).text
    assert "&lt;script&gt;alert(1)" in page
    assert "🦖" in page
    assert not any(live in page for live in ("<script>alert", "<img src=x", "javascript:"))


async def test_lost_jobs_leave_the_queue_after_a_week(stranger: httpx.AsyncClient, seed: Seed) -> None:
    await seed.job(1, "failed", created_at=ago(days=8))
    await seed.job(2, "failed", created_at=ago(days=6))
    await seed.job(3, "pending", created_at=ago(days=8))
    for address in ("/queue.json", "/queue.json?status=failed,pending"):
        jobs = (await stranger.get(address)).json()["jobs"]
        assert [job["job_id"] for job in jobs] == [3, 2], address
    older = (await stranger.get("/api/queue?start=-9d")).json()
    assert [job["job_id"] for job in older] == [3, 2, 1]


async def test_of_several_holds_the_one_that_lasts_is_shown_in_the_words_of_every_page(
    stranger: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.board("node-1")
    for scope, target in (("pool", "vector"), ("board", "node-1")):
        await seed.hold(scope, target, "breaker", until=ago(hours=-1), note="shorter")
        await seed.hold(scope, target, "drain" if scope == "board" else "pause", note="longer")
    page = (await stranger.get("/queue")).text
    assert "longer" in page
    assert "shorter" not in page
    assert (await stranger.get("/boards.json")).json()[0]["hold"]["why"] == "drain"
    await seed.run("DELETE FROM holds WHERE why <> 'breaker'")
    assert "held after failures until" in (await stranger.get("/queue")).text


@pytest.mark.parametrize(
    ("whys", "offered"),
    [
        ((), {"stop"}),
        (("quiet_hours",), {"stop"}),  # no Resume lifts them
        (("breaker",), {"stop", "resume"}),
        (("by hand",), {"resume"}),
        (("by hand", "quiet_hours", "breaker"), {"resume"}),
    ],
)
async def test_what_holds_a_pool_or_board_hides_only_what_cannot_help(
    stranger: httpx.AsyncClient,
    browser: httpx.AsyncClient,
    seed: Seed,
    whys: tuple[str, ...],
    offered: set[str],
) -> None:
    await seed.board("node-1")
    for scope, target, verb, page, place in (
        ("pool", "vector", "pause", "/queue", "/api/pools/vector"),
        ("entity", "acme", "pause", "/queue", "/api/entities/acme"),
        ("board", "node-1", "drain", "/boards", "/api/boards/node-1"),
    ):
        if scope == "entity" and not whys:
            continue  # owners are shown while they have jobs or are held
        for why in whys:
            await seed.hold(scope, target, verb if why == "by hand" else why)
        for reader, shown in ((stranger, "{}</code>"), (browser, 'action="{}"')):
            text = unescape((await reader.get(page)).text)
            found = {each for each in (verb, "resume") if shown.format(f"{place}/{each}") in text}
            assert found == {verb if each == "stop" else each for each in offered}


async def test_the_command_prints_nothing_that_a_terminal_would_obey(database_url: str, seed: Seed) -> None:
    await seed.job(
        1, "failed", failure_info={"reason": "not_found", "message": "\x1b[2Jgone\r\nJob 1 runs.\u202e"}
    )
    _, said = await command(database_url, "1")
    assert any("gone" in line for line in said)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", "".join(said))
    assert not any(line.startswith("Job 1 runs.") for line in said)


@pytest.mark.parametrize("address", ["/login?nxt=/jobs", "/api/openapi.json?page=1"])
async def test_an_unknown_field_is_refused_here_too(stranger: httpx.AsyncClient, address: str) -> None:
    answer = await stranger.get(address)
    assert answer.status_code == 400
    assert "There is no parameter" in unescape(answer.text)
