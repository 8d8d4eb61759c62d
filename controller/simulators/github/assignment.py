"""Which runner gets which job: labels and group decide, never the job that a runner was made for.

Queued jobs are kept by (owner, labels, repository) and idle runners by where they are registered, so that an event
looks at the few distinct label sets and not at every job.
"""

import random
from collections import defaultdict

from controller.ports import Clock
from controller.simulators.github.behaviour import Behaviour
from controller.simulators.github.state import Account, Job, Repository, Runner
from controller.simulators.github.timers import Timers

Queue = dict[int, Job]  # by job id, in queue order


class Assignment:
    """Brings queued jobs and idle online runners together."""

    def __init__(self, clock: Clock, rng: random.Random, timers: Timers, behaviour: Behaviour) -> None:
        self._clock = clock
        self._rng = rng
        self._timers = timers
        self._behaviour = behaviour
        self._queues: dict[int, dict[tuple[frozenset[str], int], Queue]] = defaultdict(dict)
        self._idle_in_owner: dict[int, dict[int, Runner]] = defaultdict(dict)
        self._idle_in_repository: dict[int, dict[int, Runner]] = defaultdict(dict)

    def enqueue(self, job: Job) -> None:
        """A job wants a runner from now on."""
        queues = self._queues[job.repository.owner.id]
        queues.setdefault((job.labels, job.repository.id), {})[job.id] = job
        runner = self._runner_for(job)
        if runner is not None:
            self._bind(job, runner)

    def withdraw(self, job: Job) -> None:
        """A job wants no runner any more, or has one."""
        queues = self._queues[job.repository.owner.id]
        key = (job.labels, job.repository.id)
        queue = queues.get(key, {})
        queue.pop(job.id, None)
        if not queue:
            queues.pop(key, None)

    def offer(self, runner: Runner) -> None:
        """A runner is online and idle."""
        self._idle(runner)[runner.id] = runner
        job = self._job_for(runner)
        if job is not None:
            self._bind(job, runner)

    def retract(self, runner: Runner) -> Job | None:
        """A runner takes no more work; answers the job that it had been given but not picked up."""
        self._idle(runner).pop(runner.id, None)
        job, runner.offered = runner.offered, None
        if job is not None:
            job.runner = None
        return job

    def is_queued(self, job: Job) -> bool:
        """Whether the job waits for a runner."""
        queues = self._queues[job.repository.owner.id]
        return job.id in queues.get((job.labels, job.repository.id), {})

    def _idle(self, runner: Runner) -> dict[int, Runner]:
        if runner.repository is not None:
            return self._idle_in_repository[runner.repository.id]
        return self._idle_in_owner[runner.owner.id]

    def _runner_for(self, job: Job) -> Runner | None:
        candidates = [*self._idle_in_repository[job.repository.id].values()]
        candidates += self._idle_in_owner[job.repository.owner.id].values()
        matching = [r for r in candidates if job.labels <= r.matching and may_serve(r, job.repository)]
        if not matching:
            return None
        return self._rng.choice(matching) if self._behaviour.assign_at_random else matching[0]

    def _job_for(self, runner: Runner) -> Job | None:
        heads = [
            next(iter(queue.values()))
            for (labels, _), queue in self._queues[runner.owner.id].items()
            if labels <= runner.matching
        ]
        fitting = [job for job in heads if may_serve(runner, job.repository)]
        return min(fitting, key=lambda job: (job.queued_at or job.created_at, job.id), default=None)

    def _bind(self, job: Job, runner: Runner) -> None:
        self.withdraw(job)
        self._idle(runner).pop(runner.id, None)
        now = self._clock.now()
        job.runner = runner
        runner.offered = job
        job.history.append((now, f"assigned {runner.name}"))
        runner.wake.set()
        self._timers.at(now + self._behaviour.pickup_within, lambda: self._give_up(job, runner))

    def _give_up(self, job: Job, runner: Runner) -> None:
        """Queue the job again that its runner did not pick up; the runner must speak before it gets another."""
        if runner.offered is not job:
            return
        runner.offered = None
        runner.wake.clear()
        job.runner = None
        job.history.append((self._clock.now(), "requeued"))
        self.enqueue(job)


def may_serve(runner: Runner, repository: Repository) -> bool:
    """Whether the runner's place and group let it take jobs of the repository."""
    if runner.repository is not None:
        return runner.repository is repository
    return runner.owner is repository.owner and runner.group.serves(repository)


def visible_groups(account: Account, repository: Repository) -> list[int]:
    """The ids of the groups that a repository may use."""
    return [group.id for group in account.groups.values() if group.serves(repository)]
