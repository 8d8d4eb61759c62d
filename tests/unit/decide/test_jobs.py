"""What follows from what GitHub says of a silent job."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.decide.jobs import (
    judge_missing,
    judge_run,
    judge_sighting,
    needs_run,
    pending_silence,
    put_off,
)
from controller.domain.changes import Complete, FailJob, Hear, Start, Suspect
from controller.domain.jobs import JobStatus
from controller.domain.reasons import JobFailure
from controller.domain.sightings import JobSighting, RunSighting
from tests.unit.decide.builders import NOW, a_job, ago

RUNNER = "rise-riscv-runner-a1b2c3d4e"
TEN_MINUTES = timedelta(minutes=10)


def seen(status: str = "queued", **fields: Any) -> JobSighting:
    values: dict[str, Any] = {
        "job_id": 1,
        "run_id": 77,
        "conclusion": None,
        "runner_name": None,
        "labels": ("x",),
        "created_at": ago(120),
    }
    return JobSighting(status=status, **(values | fields))


def minutes(number: int) -> datetime:
    return NOW + timedelta(minutes=number)


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.RUNNING])
def test_what_github_has_completed_is_completed(status: JobStatus) -> None:
    there = seen(
        "completed", conclusion="failure", runner_name=RUNNER, started_at=ago(60), completed_at=ago(5)
    )
    job = a_job(status=status)
    assert judge_sighting(job, there, NOW) == Complete(job.job_id, "failure", RUNNER, ago(60), ago(5))


def test_a_job_cancelled_before_it_ran_has_no_start() -> None:
    there = seen("completed", conclusion="cancelled", started_at=ago(60))
    job = a_job()
    assert judge_sighting(job, there, NOW) == Complete(job.job_id, "cancelled", None, None, NOW)


def test_a_pending_job_that_runs_there_is_started_here() -> None:
    job = a_job()
    there = seen("in_progress", runner_name=RUNNER, started_at=ago(9))
    assert judge_sighting(job, there, NOW) == Start(job.job_id, RUNNER, ago(9), minutes(30))


@pytest.mark.parametrize("status", ["queued", "in_progress", "waiting"])
def test_a_running_job_never_goes_back(status: str) -> None:
    job = a_job(status=JobStatus.RUNNING)
    assert judge_sighting(job, seen(status), NOW) == Hear(job.job_id, minutes(30))


@pytest.mark.parametrize("status", ["waiting", "pending", "requested"])
def test_a_job_that_waits_for_an_approval_is_no_demand_and_is_looked_at_every_minute(status: str) -> None:
    job = a_job()
    assert judge_sighting(job, seen(status), NOW) == Hear(job.job_id, minutes(1), confirmed=False)


@pytest.mark.parametrize(("polls", "after"), [(0, 5), (1, 10), (2, 15), (3, 15), (50, 15)])
def test_a_queued_job_is_asked_for_less_and_less_often(polls: int, after: int) -> None:
    job = a_job(polls=polls)
    assert judge_sighting(job, seen(), NOW) == Hear(job.job_id, minutes(after))


def test_a_pending_job_may_be_silent_for_a_minute_at_first() -> None:
    assert pending_silence(0) == timedelta(seconds=60)


@pytest.mark.parametrize(("age", "asked"), [(599, False), (600, True)])
def test_the_run_is_asked_once_a_job_has_been_queued_for_ten_minutes(age: int, asked: bool) -> None:
    assert needs_run(a_job(created_at=ago(age)), seen(), NOW, TEN_MINUTES) is asked


def test_the_run_of_a_job_that_is_not_queued_is_not_asked() -> None:
    old = ago(10_000)
    assert not needs_run(a_job(created_at=old), seen("in_progress"), NOW, TEN_MINUTES)
    assert not needs_run(a_job(created_at=old, status=JobStatus.RUNNING), seen(), NOW, TEN_MINUTES)


def test_a_job_still_queued_in_a_completed_run_is_failed() -> None:
    job = a_job(created_at=ago(601))
    change = judge_run(job, RunSighting(77, "completed", "cancelled"), NOW)
    assert isinstance(change, FailJob)
    assert change.reason is JobFailure.STUCK_QUEUED


@pytest.mark.parametrize("status", ["queued", "in_progress", None])
def test_a_run_that_goes_on_fails_nothing(status: str | None) -> None:
    job = a_job(created_at=ago(601))
    assert judge_run(job, RunSighting(77, status, None), NOW) == Hear(job.job_id, minutes(5))


@pytest.mark.parametrize(("since", "failed"), [(None, False), (59, False), (60, True)])
def test_a_404_is_believed_at_the_second_look(since: int | None, failed: bool) -> None:
    job = a_job(missing_since=ago(since) if since is not None else None)
    change = judge_missing(job, NOW)
    if failed:
        assert isinstance(change, FailJob)
        assert change.reason is JobFailure.NOT_FOUND
    else:
        assert change == Suspect(job.job_id, minutes(1))


@pytest.mark.parametrize("confirmed", [True, False])
def test_when_nothing_was_learnt_nothing_changes(confirmed: bool) -> None:
    job = a_job(confirmed=confirmed)
    assert put_off(job, NOW) == Hear(job.job_id, minutes(1), confirmed=confirmed)
