"""sync_jobs: what follows from what GitHub says of a job that has been silent. Pure.

Webhooks are the truth, polling repairs: a change here means that a webhook was lost or is late.
"""

from datetime import datetime, timedelta

from controller.domain.changes import Complete, FailJob, Hear, JobChange, PutOff, Start, Suspect
from controller.domain.constants import (
    CONFIRM_EVERY,
    GONE_EVERY,
    MISSING_CONFIRMATION,
    PENDING_SILENCE,
    RUNNING_SILENCE,
)
from controller.domain.jobs import Job, JobStatus
from controller.domain.reasons import JobFailure
from controller.domain.sightings import JobSighting, RunSighting

HELD_BY_GITHUB = ("waiting", "pending", "requested")


def judge_sighting(job: Job, seen: JobSighting, now: datetime) -> JobChange:
    """Compare our row with the job as GitHub shows it."""
    if seen.status == "completed":
        ran = seen.runner_name is not None
        return Complete(
            job.job_id,
            seen.conclusion,
            seen.runner_name,
            seen.started_at if ran else None,
            seen.completed_at or now,
        )
    if seen.status == "in_progress" and job.status is JobStatus.PENDING:
        return Start(job.job_id, seen.runner_name, seen.started_at or now, now + RUNNING_SILENCE)
    if job.status is JobStatus.RUNNING:
        return Hear(job.job_id, now + RUNNING_SILENCE)
    if seen.status in HELD_BY_GITHUB:
        return Hear(job.job_id, now + CONFIRM_EVERY, confirmed=False)
    return Hear(job.job_id, now + pending_silence(job.polls + 1))


def pending_silence(polls: int) -> timedelta:
    """How long a pending job may be silent after so many looks."""
    return PENDING_SILENCE[min(polls, len(PENDING_SILENCE) - 1)]


def needs_run(job: Job, seen: JobSighting, now: datetime, stuck_age: timedelta) -> bool:
    """Whether the run must be asked: the job has been queued for so long that its run may have ended."""
    return job.status is JobStatus.PENDING and seen.status == "queued" and now - job.created_at >= stuck_age


def judge_run(job: Job, run: RunSighting, now: datetime) -> JobChange:
    """A job still queued in a run that has completed is stuck for ever."""
    if run.status == "completed":
        message = f"run {run.run_id} completed ({run.conclusion}), the job stayed queued"
        return FailJob(job.job_id, JobFailure.STUCK_QUEUED, message)
    return Hear(job.job_id, now + pending_silence(job.polls + 1))


def judge_missing(job: Job, now: datetime) -> JobChange:
    """404 by its own GET, while the installation works: failed only at the second look."""
    if job.missing_since is None or now - job.missing_since < MISSING_CONFIRMATION:
        return Suspect(job.job_id, now + MISSING_CONFIRMATION)
    return FailJob(job.job_id, JobFailure.NOT_FOUND, "GitHub answers 404 for this job")


def judge_gone(job: Job, at_work: bool, now: datetime) -> JobChange:
    """The App is not installed any more: nobody will tell us of this job's end, unless its worker still runs it."""
    if at_work:
        return PutOff(job.job_id, now + GONE_EVERY)
    message = f"the App is not installed at {job.entity.name}"
    return FailJob(job.job_id, JobFailure.INSTALLATION_GONE, message)


def put_off(job: Job, now: datetime, patience: timedelta = PENDING_SILENCE[0]) -> JobChange:
    """Nothing was learnt: keep the row as it is and ask again later."""
    return PutOff(job.job_id, now + patience)
