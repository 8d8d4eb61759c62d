"""The way of a job and of a worker, as steps with durations."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.web.timelines import job_parts, job_stages, staged, worker_stages
from tests.clocks import EPOCH as NOW

BEFORE = NOW - timedelta(minutes=10)


def at(seconds: float) -> Any:
    return BEFORE + timedelta(seconds=seconds)


def a_job(**fields: Any) -> dict[str, Any]:
    return {
        "status": "pending",
        "created_at": at(0),
        "seen_at": at(1),
        "started_at": None,
        "completed_at": None,
        **fields,
    }


WORKER = {"created_at": at(60), "jit_at": at(61), "pod_at": at(62), "running_at": at(70), "online_at": at(75)}


def test_a_finished_job_has_come_all_the_way() -> None:
    job = a_job(status="completed", started_at=at(80), completed_at=at(200))
    stages = job_stages(job, WORKER)
    assert [stage.state for stage in stages] == ["done"] * 9
    took = [round(stage.took.total_seconds()) for stage in stages if stage.took is not None]
    assert took == [1, 59, 1, 1, 8, 5, 5, 120]


def test_a_waiting_job_shows_what_comes_next() -> None:
    assert [stage.state for stage in job_stages(a_job(), None)] == ["done", "done", "next", *["open"] * 6]


def test_a_step_that_was_never_seen_stays_open_although_later_ones_came() -> None:
    stages = staged([("a", at(0)), ("b", None), ("c", at(5)), ("d", None)], ended=True)
    assert [stage.state for stage in stages] == ["done", "open", "done", "open"]
    assert stages[2].took == timedelta(seconds=5)


@pytest.mark.parametrize("online_at", [None, at(95)])
def test_a_runner_that_started_a_job_was_online_whenever_that_was_noticed(online_at: datetime | None) -> None:
    stages = job_stages(a_job(status="running", started_at=at(80)), {**WORKER, "online_at": online_at})
    online, started = stages[6:8]
    assert (online.name, online.state, online.at) == ("Online", "done", None)
    assert started.took == timedelta(seconds=10)


def test_every_step_says_what_it_is() -> None:
    stages = [
        *job_stages(a_job(), None),
        *worker_stages({**WORKER, "status": "pending", "completed_at": None}),
    ]
    assert all(stage.means for stage in stages)


def test_a_runner_that_was_there_before_the_job_makes_no_negative_time() -> None:
    early = {**WORKER, "created_at": at(-300)}
    job = a_job(status="running", started_at=at(3))
    assert all(stage.took >= timedelta() for stage in job_stages(job, early) if stage.took is not None)
    assert [part.took for part in job_parts(job, early, NOW)][:2] == [timedelta(), timedelta(seconds=3)]


def test_the_parts_of_a_jobs_time_fill_the_bar() -> None:
    job = a_job(status="completed", started_at=at(80), completed_at=at(200))
    parts = job_parts(job, WORKER, NOW)
    assert [(part.name, part.took.total_seconds()) for part in parts] == [
        ("waited", 60),
        ("runner start", 20),
        ("ran", 120),
    ]
    assert round(sum(part.width for part in parts)) == 100
