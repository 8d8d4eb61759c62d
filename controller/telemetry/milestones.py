"""Milestones of jobs and workers → counters and histograms. Whoever wrote the row counts it: no leader is needed."""

from datetime import datetime
from typing import assert_never

from controller.domain.milestones import JobEnded, JobSeen, JobStarted, Milestone
from controller.telemetry.metrics import Metrics


class Milestones:
    """Counts what was reached."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def note(self, milestone: Milestone) -> None:
        """Count one milestone of a job."""
        match milestone:
            case JobSeen(queued_at, seen_at):
                self.stage("seen", queued_at, seen_at)
            case JobStarted(pool, queued_at, started_at):
                waited = max(0.0, (started_at - queued_at).total_seconds())
                self._metrics.job_wait_seconds.labels(pool or "").observe(waited)
            case JobEnded(pool, conclusion):
                self._metrics.jobs_finished_total.labels(pool or "", conclusion or "").inc()
            case _:
                assert_never(milestone)

    def stage(self, name: str, since: datetime, until: datetime) -> None:
        """Note how long a stage on the way to a started job took; clocks that disagree make no negative time."""
        self._metrics.provision_seconds.labels(name).observe(max(0.0, (until - since).total_seconds()))
