"""The life of jobs and runs: queued, waiting, picked up, ended; each step is told by a webhook."""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta

from controller.ports import Clock
from controller.simulators.github.assignment import Assignment
from controller.simulators.github.behaviour import Behaviour
from controller.simulators.github.state import Account, Job, JobSpec, Json, Repository, Run, Runner
from controller.simulators.github.timers import Timers
from controller.simulators.github.world import World

Announce = Callable[[Job, str], None]  # a webhook with this action


class Jobs:
    """Every transition of a job goes through here."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        rng: random.Random,
        timers: Timers,
        behaviour: Behaviour,
        assignment: Assignment,
        announce: Announce,
    ) -> None:
        self._world = world
        self._clock = clock
        self._rng = rng
        self._timers = timers
        self._behaviour = behaviour
        self._assignment = assignment
        self._announce = announce

    def queue_run(
        self,
        repository: Repository,
        specs: Sequence[JobSpec],
        *,
        event: str = "push",
        branch: str = "main",
        workflow: str = "ci.yml",
        fork: bool = False,
        actor: Account | None = None,
        inputs: Json | None = None,
    ) -> Run:
        """Start a run with these jobs; without an actor its owner did it."""
        now = self._clock.now()
        known = repository.workflows.get(workflow)
        run = Run(
            id=self._world.next_id("run"),
            repository=repository,
            number=len(repository.runs) + 1,
            event=event,
            branch=branch,
            head_sha=f"{self._rng.getrandbits(160):040x}",
            workflow_id=known.id if known else 80_000_000,
            workflow_file=workflow,
            created_at=now,
            updated_at=now,
            fork=fork,
            actor=actor or repository.owner,
            inputs=inputs or {},
        )
        repository.runs[run.id] = run
        self._world.runs[run.id] = run
        for position, spec in enumerate(specs):
            self._start(self._make(run, spec, position))
        return run

    def approve(self, job: Job) -> None:
        """Let a waiting job go; `queued` is told a second time."""
        if job.status != "waiting":
            raise ValueError(f"job {job.id} is {job.status}, not waiting")
        self._queue(job)

    def rerun(self, run: Run, jobs: Sequence[Job]) -> list[Job]:
        """Run these jobs again: new ids under the same run, a higher attempt."""
        run.attempt += 1
        run.forced = None
        again = [self._make(run, job.spec, job.position) for job in jobs]
        for job in again:
            self._start(job)
        return again

    def cancel(self, job: Job) -> None:
        """Cancel: at once in the queue, by way of its runner while it runs."""
        if job.status == "completed" or job.cancel_requested:
            return
        job.cancel_requested = True
        job.history.append((self._clock.now(), "cancel_requested"))
        if job.status != "in_progress":
            self.complete(job, "cancelled")
            return
        due = self._clock.now() + self._behaviour.cancel_within
        self._timers.at(due, lambda: self.complete(job, "cancelled"))

    def pick_up(self, job: Job, runner: Runner) -> None:
        """The runner has received the job."""
        now = self._clock.now()
        job.status = "in_progress"
        job.started_at = now
        runner.offered = None
        runner.job = job
        runner.busy_changes.append((now, True))
        self._note(job, "in_progress")
        self._announce(job, "in_progress")

    def complete(self, job: Job, conclusion: str) -> None:
        """End a job once; whatever comes later changes nothing."""
        if job.status == "completed":
            return
        self._assignment.withdraw(job)
        if job.runner is not None and job.runner.offered is job:
            self._unassign(job)
        job.status = "completed"
        job.conclusion = conclusion
        job.completed_at = self._clock.now()
        self._note(job, f"completed {conclusion}")
        self._announce(job, "completed")

    def requeue(self, job: Job) -> None:
        """Put a job back whose runner went away before it was picked up."""
        self._note(job, "requeued")
        self._assignment.enqueue(job)

    def end_run(self, run: Run, conclusion: str) -> None:
        """End a run and leave its queued jobs as they are, for ever: no webhook, no runner."""
        run.forced = ("completed", conclusion)
        run.updated_at = self._clock.now()
        for job in run.jobs:
            self._assignment.withdraw(job)

    def hide(self, job: Job, duration: timedelta, in_list: bool) -> None:
        """Answer 404 for the job for a while, and leave it out of its run's list if asked to."""
        job.hidden_until = self._clock.now() + duration
        job.hidden_in_list = in_list

    def _make(self, run: Run, spec: JobSpec, position: int) -> Job:
        job = Job(
            id=self._world.next_id("job"),
            run=run,
            spec=spec,
            attempt=run.attempt,
            position=position,
            labels=frozenset(label.lower() for label in spec.labels),
            created_at=self._clock.now(),
        )
        run.jobs.append(job)
        self._world.jobs[job.id] = job
        return job

    def _start(self, job: Job) -> None:
        if job.spec.conclusion == "skipped":
            self.complete(job, "skipped")
        elif job.spec.waiting:
            job.status = "waiting"
            job.environment = True
            self._note(job, "waiting")
            self._announce(job, "queued")  # GitHub says queued, with status waiting and a deployment
            self._announce(job, "waiting")
        else:
            self._queue(job)

    def _queue(self, job: Job) -> None:
        job.status = "queued"
        job.queued_at = self._clock.now()
        self._note(job, "queued")
        self._announce(job, "queued")
        self._timers.at(job.queued_at + self._behaviour.queue_limit, lambda: self._expire(job))
        self._assignment.enqueue(job)

    def _expire(self, job: Job) -> None:
        if job.status == "queued" and job.run.forced is None:
            self.complete(job, "cancelled")

    def _unassign(self, job: Job) -> None:
        runner = job.runner
        if runner is None:
            return
        self._assignment.retract(runner)
        runner.wake.clear()
        self._assignment.offer(runner)

    def _note(self, job: Job, what: str) -> None:
        now = self._clock.now()
        job.history.append((now, what))
        job.run.updated_at = now


def run_state(run: Run) -> tuple[str, str | None]:
    """Status and conclusion of a run, from its jobs."""
    if run.forced is not None:
        return run.forced
    jobs = run.latest_jobs()
    states = {job.status for job in jobs}
    if "in_progress" in states or ("completed" in states and len(states) > 1):
        return "in_progress", None
    for status in ("queued", "waiting", "requested"):
        if status in states:
            return status, None
    endings = {job.conclusion for job in jobs}
    for conclusion in ("failure", "timed_out", "cancelled", "success"):
        if conclusion in endings:
            return "completed", conclusion
    return "completed", "skipped"
