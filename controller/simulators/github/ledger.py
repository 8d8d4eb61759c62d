"""The simulated GitHub's own truth, read from its state: what tests compare the controller's view with."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from controller.simulators.github.state import Job, Json, Runner
from controller.simulators.github.world import World


@dataclass(frozen=True, slots=True)
class JobTruth:
    """What happened to a job; `runner_name` only once a runner has picked it up."""

    job_id: int
    run_id: int
    attempt: int
    repository: str
    name: str
    labels: tuple[str, ...]
    status: str
    conclusion: str | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    runner_name: str | None
    events: tuple[tuple[datetime, str], ...]


@dataclass(frozen=True, slots=True)
class RunnerTruth:
    """What happened to a registration, and why it is gone."""

    runner_id: int
    name: str
    owner: str
    repository: str | None
    group_id: int
    labels: tuple[str, ...]
    registered_at: datetime
    online_at: datetime | None
    job_id: int | None
    removed_at: datetime | None
    removed_why: str | None
    events: tuple[tuple[datetime, str], ...]


class Ledger:
    """Read-only."""

    def __init__(self, world: World) -> None:
        self._world = world

    def job(self, job_id: int) -> JobTruth:
        """One job."""
        return _job_truth(self._world.jobs[job_id])

    def jobs(self) -> Iterator[JobTruth]:
        """All jobs, in the order of their ids."""
        return map(_job_truth, self._world.jobs.values())

    def runner(self, name: str) -> RunnerTruth:
        """The newest registration of that name; KeyError if there never was one."""
        for truth in sorted(self.runners(), key=lambda each: -each.runner_id):
            if truth.name == name:
                return truth
        raise KeyError(name)

    def runners(self) -> Iterator[RunnerTruth]:
        """All registrations there ever were, the past ones first."""
        for runner in (*self._world.past_runners.values(), *self._world.runners.values()):
            yield _runner_truth(runner)

    def as_json(self) -> Json:
        """Everything, for another process."""
        return {
            "jobs": [_jsonable(truth) for truth in self.jobs()],
            "runners": [_jsonable(truth) for truth in self.runners()],
        }


def _job_truth(job: Job) -> JobTruth:
    return JobTruth(
        job_id=job.id,
        run_id=job.run.id,
        attempt=job.attempt,
        repository=job.repository.full_name,
        name=job.spec.name,
        labels=tuple(job.spec.labels),
        status=job.status,
        conclusion=job.conclusion,
        created_at=job.created_at,
        queued_at=job.queued_at,
        started_at=job.started_at,
        completed_at=job.completed_at,
        runner_name=job.runner.name if job.runner and job.started_at else None,
        events=tuple(job.history),
    )


def _runner_truth(runner: Runner) -> RunnerTruth:
    return RunnerTruth(
        runner_id=runner.id,
        name=runner.name,
        owner=runner.owner.login,
        repository=runner.repository.full_name if runner.repository else None,
        group_id=runner.group.id,
        labels=runner.labels,
        registered_at=runner.registered_at,
        online_at=runner.session_at,
        job_id=runner.job.id if runner.job else None,
        removed_at=runner.removed_at,
        removed_why=runner.removed_why,
        events=tuple(runner.history),
    )


def _jsonable(truth: JobTruth | RunnerTruth) -> Json:
    names = type(truth).__dataclass_fields__
    return {name: _plain(getattr(truth, name)) for name in names}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
