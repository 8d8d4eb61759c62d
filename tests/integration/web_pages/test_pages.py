"""Each page says what it should, in words, also when there is nothing to say."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape

import httpx
import pytest

from controller.domain.reasons import EXPLANATIONS, HARMLESS, Reason, Skip
from controller.gateways.postgres.database import Database
from controller.ports import Secret
from tests.clocks import EPOCH as NOW
from tests.integration.web_pages.conftest import ReportedLoop, page_app
from tests.integration.web_pages.seeding import Seed, ago

PAGES = ("/", "/overview", "/usage", "/history", "/jobs", "/workers", "/boards")


@pytest.mark.parametrize("page", PAGES)
async def test_an_empty_page_says_what_to_do_next(browser: httpx.AsyncClient, page: str) -> None:
    answer = await browser.get(page)
    assert answer.status_code == 200
    assert 'class="empty"' in answer.text
    assert "boards@example.org" in answer.text


@pytest.mark.parametrize("page", [*PAGES, "/nowhere", "/jobs.json", "/health", "/static/style.css"])
async def test_every_answer_carries_the_security_headers(browser: httpx.AsyncClient, page: str) -> None:
    answer = await browser.get(page)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self';")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert " style=" not in answer.text
    assert " onclick" not in answer.text


@pytest.mark.parametrize(
    "page", [*PAGES, "/usage.json", "/jobs.json", "/workers.json", "/boards.json", "/ready"]
)
async def test_head_is_answered_like_get(browser: httpx.AsyncClient, page: str) -> None:
    assert (await browser.head(page)).status_code == 200


async def test_the_overview_shows_boards_queue_failures_and_leader(
    browser: httpx.AsyncClient, seed: Seed, loop_status: ReportedLoop
) -> None:
    await seed.board("node-1", "busy", worker="w-1")
    await seed.board("node-2", "unreachable", heartbeat_at=ago(minutes=9))
    await seed.hold("board", "node-2", "drain", until=NOW + timedelta(hours=1))
    await seed.worker("w-1", "running", node="node-1")
    await seed.job(1, "running", runner_name="w-1", started_at=ago(minutes=2))
    await seed.job(2, "pending", created_at=ago(minutes=41))
    await seed.worker("w-2", "failed", failure_reason="pod_missing", completed_at=ago(hours=1))
    await seed.worker("w-3", "failed", failure_reason="pod_missing", completed_at=ago(hours=13))  # yesterday
    await seed.job(3, "failed", completed_at=ago(hours=1))
    seen = (await browser.get("/overview.json")).json()
    assert seen["counts"] == {
        "jobs_pending": 1,
        "jobs_running": 1,
        "workers_pending": 0,
        "workers_running": 1,
        "workers_failed_today": 1,
        "workers_failed_lately": 0,
        "jobs_lost_today": 1,
        "oldest_at": "2026-03-01T11:19:00Z",
        "oldest_wait_seconds": 2460,
    }
    assert seen["controller"]["role"] == "leader"
    tiles = {board["node"]: board for board in seen["boards"]}
    assert (tiles["node-1"]["job_id"], tiles["node-1"]["pools"]) == (1, ["scw-em-rv1"])
    assert tiles["node-2"]["silent"]
    assert tiles["node-2"]["hold"]["why"] == "drain"
    page = (await browser.get("/")).text
    assert "oldest for 41m" in page
    assert '<time datetime="2026-03-01T11:59:56Z">2026-03-01 11:59:56 UTC</time>' in page


@pytest.mark.parametrize("skip", list(Skip))
async def test_a_pending_job_shows_its_stored_reason_and_next_step(
    browser: httpx.AsyncClient, seed: Seed, skip: Skip
) -> None:
    await seed.job(
        1, "pending", skip_reason=skip.value, skip_since=ago(minutes=3), skip_detail={"boards": 12}
    )
    reason = (await browser.get("/jobs/1.json")).json()["job"]["reason"]
    assert reason == {
        "reason": skip.value,
        "sentence": EXPLANATIONS[skip].sentence,
        "next_step": EXPLANATIONS[skip].next_step,
        "since": "2026-03-01T11:57:00Z",
        "detail": {"boards": 12},
    }
    for page in ("/jobs/1", "/jobs", "/"):
        assert reason["sentence"].partition("'")[0] in (await browser.get(page)).text


@pytest.mark.parametrize("reason", list(Reason))
async def test_a_failed_worker_shows_why_with_exit_codes_log_and_events(
    browser: httpx.AsyncClient, seed: Seed, reason: Reason
) -> None:
    info = {
        "containers": [{"name": "runner", "exit_code": 137, "reason": "OOMKilled"}],
        "log_tail": "the runner's last words",
        "events": [
            {"reason": "Evicted", "message": "no disk", "count": 2, "last_time": "2026-03-01T11:00:00Z"}
        ],
    }
    await seed.worker(
        "w-1", "failed", failure_reason=reason.value, failure_info=info, completed_at=ago(hours=1)
    )
    for address in ("/workers/w-1", "/workers", *(() if reason in HARMLESS else ("/",))):
        page = (await browser.get(address)).text
        assert EXPLANATIONS[reason].sentence.partition("'")[0] in page
        assert "exit code <b>137</b> (OOMKilled)" in page
        assert "last words" in page
        assert "Evicted" in page


async def test_a_job_shows_its_workers_and_its_events_in_order(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, "running", runner_name="w-2", started_at=ago(minutes=1))
    await seed.worker("w-1", "failed", made_for=1, created_at=ago(minutes=9), failure_reason="pod_failed")
    await seed.worker("w-2", "running", made_for=6, created_at=ago(minutes=3))
    await seed.event("workflow_job.in_progress", job_id=1, at=ago(minutes=1), outcome="job_marked_running")
    await seed.event("workflow_job.queued", job_id=1, at=ago(minutes=10), outcome="job_stored")
    story = (await browser.get("/jobs/1.json")).json()
    assert [worker["name"] for worker in story["workers"]] == ["w-2", "w-1"]
    assert [event["kind"] for event in story["events"]] == ["workflow_job.queued", "workflow_job.in_progress"]
    page = (await browser.get("/jobs/1")).text
    assert "runs it" in page
    assert "made for it" in page


async def test_an_ignored_job_answers_from_its_events(browser: httpx.AsyncClient, seed: Seed) -> None:
    detail = {"labels": ["riscv-ubuntu"], "nearest": ["ubuntu-24.04-riscv"], "private": False}
    await seed.event("workflow_job.queued", outcome="ignored_no_label", job_id=42, detail=detail)
    page = await browser.get("/jobs/42")
    assert page.status_code == 200
    assert "Your labels [riscv-ubuntu] match no pool. Nearest: [ubuntu-24.04-riscv]." in page.text


@pytest.mark.parametrize(
    "path", ["/jobs/99", "/jobs/abc", "/jobs/99999999999999999999", "/workers/nobody", "/nope"]
)
async def test_what_does_not_exist_is_a_helpful_404_by_suffix(browser: httpx.AsyncClient, path: str) -> None:
    page = await browser.get(path)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert '<a href="/">' in page.text
    twin = await browser.get(f"{path}.json")
    assert twin.status_code == 404
    assert twin.json()["message"]


async def test_a_wrong_method_is_refused_with_what_is_allowed(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/jobs")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("2000", "/jobs/2000"),
        ("77", "/history?run=77"),
        (" #2000 ", "/jobs/2000"),
        ("rise-riscv-runner-abcdefghi", "/workers/rise-riscv-runner-abcdefghi"),
        ("https://github.com/o/r/actions/runs/77/job/2000?pr=1", "/jobs/2000"),
        ("https://github.com/o/r/actions/runs/77/attempts/2", "/history?run=77"),
        ("https://github.com/o/r/actions/runs/77", "/history?run=77"),
        ("https://github.com/o/r/pull/5/checks?check_run_id=2000", "/jobs/2000"),
        ("https://github.com/o/r/runs/2000", "/jobs/2000"),
        ("https://ghes.example/api/v3/repos/o/r/actions/jobs/2000", "/jobs/2000"),
        ("https://github.com/example-org/llvm", "/history?entity=example-org"),
        ("example-org/llvm", "/history?entity=example-org"),
    ],
)
async def test_search_goes_to_what_was_pasted(
    browser: httpx.AsyncClient, seed: Seed, text: str, place: str
) -> None:
    await seed.job(2000, run_id=77)
    answer = await browser.get("/search", params={"q": text})
    assert (answer.status_code, answer.headers["location"]) == (303, place)


@pytest.mark.parametrize("text", ["", "what is this?", "https://[", "99999999999999999999", "//evil.example"])
async def test_search_says_what_it_understands(browser: httpx.AsyncClient, text: str) -> None:
    answer = await browser.get("/search", params={"q": text})
    assert answer.status_code == 404
    assert "Paste a job id" in answer.text


LONG = "1" * 5_000  # Python itself refuses to read such a number


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        f"#{LONG}",
        f"https://github.com/o/r/actions/runs/1/job/{LONG}",
        f"https://github.com/o/r/actions/runs/{LONG}",
        f"https://github.com/o/r/actions/jobs/{LONG}",
        f"https://github.com/o/r/runs/{LONG}",
        f"https://github.com/o/r/pull/5/checks?check_run_id={LONG}",
    ],
)
async def test_a_number_that_is_too_long_for_any_id_is_not_found(
    browser: httpx.AsyncClient, text: str
) -> None:
    answer = await browser.get("/search", params={"q": text})
    assert (answer.status_code, answer.headers.get("location")) in ((404, None), (303, "/history?entity=o"))


@pytest.mark.parametrize("address", ["/jobs/{}", "/jobs/{}.json", "/jobs?run={}", "/jobs?page={}"])
async def test_a_number_that_is_too_long_in_an_address_is_refused(
    browser: httpx.AsyncClient, address: str
) -> None:
    assert (await browser.get(address.format(LONG))).status_code in (400, 404)


@pytest.fixture
async def lost() -> AsyncIterator[httpx.AsyncClient]:
    """Asks for pages whose database is away."""
    database = Database(Secret("postgresql://nobody@127.0.0.1:1/none"), "switchboard", 1)
    transport = httpx.ASGITransport(page_app(database, ReportedLoop()))
    async with httpx.AsyncClient(transport=transport, base_url="http://switchboard.test") as client:
        yield client


async def test_without_a_database_pages_say_so_and_probes_go_on(lost: httpx.AsyncClient) -> None:
    assert (await lost.get("/jobs")).status_code == 503
    assert (await lost.get("/jobs.json")).json()["error"] == "The database does not answer"
    assert (await lost.get("/health")).status_code == 200
    assert (await lost.get("/ready")).status_code == 200


async def test_what_to_do_is_said_once_for_all_jobs_of_a_reason(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    for job_id in (1, 2, 3):
        await seed.job(job_id, skip_reason="not_picked_up", skip_detail={"workers": [f"w-{job_id}"]})
    for page in ("/", "/jobs"):
        text = (await browser.get(page)).text
        assert text.count("check that the runner group on GitHub serves this repository") == 1
        assert all(f"Idle: w-{job_id}." in text for job_id in (1, 2, 3))
    assert "check that the runner group" in (await browser.get("/jobs/1")).text


@pytest.mark.parametrize("page", ["/", "/workers", "/workers?status=failed"])
async def test_what_to_do_is_said_once_for_all_workers_of_a_reason(
    browser: httpx.AsyncClient, seed: Seed, page: str
) -> None:
    for name in ("w-1", "w-2", "w-3"):
        reason = "pod_failed" if name != "w-3" else "pod_missing"
        await seed.worker(name, "failed", failure_reason=reason, completed_at=ago(minutes=5))
    text = unescape((await browser.get(page)).text)
    assert text.count(EXPLANATIONS[Reason.POD_FAILED].sentence) == 2
    assert text.count("Read the exit code and the last log lines.") == 1
    assert "Read the exit code and the last log lines." in (await browser.get("/workers/w-1")).text


async def test_a_short_log_stands_open_in_a_list_every_log_on_its_own_page_and_none_at_a_glance(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    for name, lines in (("w-short", 5), ("w-long", 6)):
        info = {"log_tail": "\n".join(["a line"] * lines)}
        failed = {"failure_reason": "pod_failed", "failure_info": info, "completed_at": ago(minutes=5)}
        await seed.worker(name, "failed", **failed)
    listed = (await browser.get("/workers")).text
    assert 'data-key="log-w-short" open>' in listed
    assert 'data-key="log-w-long">' in listed
    assert 'data-key="log-w-long" open>' in (await browser.get("/workers/w-long")).text
    assert 'data-key="log-w-short">' in (await browser.get("/")).text


async def test_notes_of_the_breaker_name_reasons_in_words(browser: httpx.AsyncClient, seed: Seed) -> None:
    note = "the last 3 workers on it failed: pod_failed"
    await seed.hold("board", "node-1", "breaker", note=note, until=NOW + timedelta(minutes=3))
    held = {"scope": "pool", "target": "vector", "why": "breaker", "note": note}
    await seed.job(1, skip_reason="held", skip_detail=held)
    for page in ("/", "/jobs/1"):
        text = (await browser.get(page)).text
        assert "failed: pod failed" in text
        assert "pod_failed" not in text


@pytest.mark.parametrize("page", ["/", "/boards"])
async def test_a_board_that_is_no_longer_held_says_so_until_the_next_iteration(
    browser: httpx.AsyncClient, seed: Seed, page: str
) -> None:
    await seed.board("node-1", "held")
    await seed.hold("board", "node-1", "drain", until=NOW + timedelta(seconds=1))
    assert "its hold has just ended" not in (await browser.get(page)).text
    await seed.run("UPDATE holds SET until = '2026-03-01 12:00Z'")
    assert "its hold has just ended" in (await browser.get(page)).text


@pytest.mark.parametrize("page", ["/", "/boards"])
@pytest.mark.parametrize(
    ("state", "what_to_do"),
    [
        ("not_ready", "look at the kubelet"),
        ("cordoned", "kubectl uncordon"),
        ("unreachable", "check power and network"),
        ("no_resource", "the device plugin does not run"),
        ("tainted", "give the pool a toleration"),
    ],
)
async def test_a_board_out_of_use_says_what_to_do_to_those_who_cannot_point_at_it(
    browser: httpx.AsyncClient, seed: Seed, page: str, state: str, what_to_do: str
) -> None:
    await seed.board("node-1", state)
    assert re.search(rf'"by help">[^<]*{what_to_do}', (await browser.get(page)).text)


async def test_what_is_said_of_a_job_that_was_not_taken_on_fits_wherever_it_is_read(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.event("workflow_job.queued", job_id=42)
    told = (await browser.get("/jobs/42.json")).json()["explanation"]["next_step"]
    assert told.startswith("Its events, on the page of the job, tell what arrived")


async def test_the_days_of_a_filter_are_said_to_be_utc(browser: httpx.AsyncClient) -> None:
    assert "From (UTC)" in (await browser.get("/workers")).text


@pytest.mark.parametrize("private", [False, True])
async def test_a_job_links_to_the_runners_on_their_way(
    browser: httpx.AsyncClient, seed: Seed, private: bool
) -> None:
    names = ["runner-a", "runner-b"]
    detail = {"workers": 2, "stages": {"pod": 2}, "names": names}
    await seed.job(1, skip_reason="runner_on_its_way", skip_since=NOW, skip_detail=detail, private=private)
    shown = (await browser.get("/jobs/1")).text
    for name in names:
        assert f'href="/workers/{name}">{name}</a>' in shown
    await seed.job(2, skip_reason="runner_on_its_way", skip_since=NOW, skip_detail={"names": "odd"})
    assert "/workers/o" not in (await browser.get("/jobs/2")).text
