"""Which milestones a job has reached by what was just written. Pure; a write that changed nothing reaches none."""

from collections.abc import Iterator
from datetime import datetime

from controller.domain.changes import Complete, FailJob, JobChange, Start
from controller.domain.deliveries import JobNotice, Outcome
from controller.domain.jobs import Job, JobStatus
from controller.domain.milestones import JobEnded, JobSeen, JobStarted, Milestone


def reached_by_delivery(
    notice: JobNotice, outcome: Outcome, pool: str | None, conclusion: str | None, now: datetime
) -> Iterator[Milestone]:
    """By a delivery; `conclusion` is given when a `completed` had come before it."""
    match outcome:
        case Outcome.JOB_STORED:
            yield JobSeen(notice.created_at, now)
        case Outcome.JOB_MARKED_RUNNING:
            yield JobStarted(pool, notice.created_at, notice.started_at or now)
        case Outcome.JOB_MARKED_COMPLETED:
            yield JobEnded(pool, notice.conclusion)
    if conclusion is not None and outcome in (Outcome.JOB_STORED, Outcome.JOB_MARKED_RUNNING):
        yield JobEnded(pool, conclusion)


def reached_by_repair(job: Job, change: JobChange) -> Iterator[Milestone]:
    """By what GitHub said when it was asked about a silent job."""
    if isinstance(change, Start | Complete) and change.started_at and job.status is JobStatus.PENDING:
        yield JobStarted(job.pool, job.created_at, change.started_at)
    if isinstance(change, Complete):
        yield JobEnded(job.pool, change.conclusion)
    if isinstance(change, FailJob):
        yield JobEnded(job.pool, change.reason.value)
