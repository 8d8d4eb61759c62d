"""What is counted of a job, and that it is counted once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controller.decide.milestones import reached_by_delivery, reached_by_repair
from controller.domain.changes import Complete, FailJob, Hear, JobChange, Start
from controller.domain.deliveries import JobNotice, Outcome
from controller.domain.jobs import Entity, EntityType, Job, JobStatus
from controller.domain.milestones import JobEnded, JobSeen, JobStarted, Milestone
from controller.domain.reasons import JobFailure

QUEUED = datetime(2026, 3, 1, 12, tzinfo=UTC)
STARTED = QUEUED + timedelta(minutes=1)
NOW = QUEUED + timedelta(minutes=5)
ACME = Entity(1, "acme", EntityType.ORGANIZATION)
NOTICE = JobNotice(
    action="queued",
    job_id=7,
    run_id=1,
    run_attempt=1,
    status="queued",
    conclusion="success",
    runner_name=None,
    labels=("rv1",),
    name="build",
    html_url="",
    entity=ACME,
    repo="acme/widgets",
    private=False,
    installation_id=5,
    created_at=QUEUED,
    started_at=STARTED,
    completed_at=None,
    has_deployment=False,
)
JOB = Job(7, ACME, "acme/widgets", ("rv1",), JobStatus.PENDING, QUEUED, "111", 5, 1, QUEUED, pool="p")


@pytest.mark.parametrize(
    ("outcome", "ended", "reached"),
    [
        (Outcome.JOB_STORED, None, [JobSeen(QUEUED, NOW)]),
        (Outcome.JOB_MARKED_RUNNING, None, [JobStarted("p", QUEUED, STARTED)]),
        (Outcome.JOB_MARKED_COMPLETED, None, [JobEnded("p", "success")]),
        (Outcome.JOB_STORED, "failure", [JobSeen(QUEUED, NOW), JobEnded("p", "failure")]),
        (Outcome.JOB_ALREADY_EXISTS, "failure", []),
        (Outcome.JOB_NOT_FOUND, None, []),
    ],
)
def test_a_delivery_counts_by_its_outcome(
    outcome: Outcome, ended: str | None, reached: list[Milestone]
) -> None:
    assert list(reached_by_delivery(NOTICE, outcome, "p", ended, NOW)) == reached


def test_a_start_without_a_time_counts_from_when_it_was_heard() -> None:
    notice = replace(NOTICE, started_at=None)
    assert list(reached_by_delivery(notice, Outcome.JOB_MARKED_RUNNING, "p", None, NOW)) == [
        JobStarted("p", QUEUED, NOW)
    ]


@pytest.mark.parametrize(
    ("status", "change", "reached"),
    [
        (JobStatus.PENDING, Start(7, "r", STARTED, NOW), [JobStarted("p", QUEUED, STARTED)]),
        (
            JobStatus.PENDING,
            Complete(7, "success", "r", STARTED, NOW),
            [JobStarted("p", QUEUED, STARTED), JobEnded("p", "success")],
        ),
        (JobStatus.PENDING, Complete(7, "cancelled", None, None, NOW), [JobEnded("p", "cancelled")]),
        (JobStatus.RUNNING, Complete(7, "success", "r", STARTED, NOW), [JobEnded("p", "success")]),
        (
            JobStatus.PENDING,
            FailJob(7, JobFailure.INSTALLATION_GONE, ""),
            [JobEnded("p", "installation_gone")],
        ),
        (JobStatus.PENDING, Hear(7, NOW, True), []),
    ],
)
def test_a_repair_counts_what_was_missed(
    status: JobStatus, change: JobChange, reached: list[Milestone]
) -> None:
    assert list(reached_by_repair(replace(JOB, status=status), change)) == reached
