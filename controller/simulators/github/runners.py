"""The life of runners: registered by a JIT config, online while they speak, removed after one job."""

import random
from collections.abc import Sequence
from datetime import timedelta

from controller.ports import Clock
from controller.simulators.github.assignment import Assignment
from controller.simulators.github.behaviour import Behaviour
from controller.simulators.github.jobs import Jobs
from controller.simulators.github.state import Account, Job, Repository, Runner, RunnerGroup
from controller.simulators.github.timers import Timers
from controller.simulators.github.world import World

TICK = timedelta(seconds=1)


class Runners:
    """Every transition of a runner goes through here."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        rng: random.Random,
        timers: Timers,
        behaviour: Behaviour,
        assignment: Assignment,
        jobs: Jobs,
    ) -> None:
        self._world = world
        self._clock = clock
        self._rng = rng
        self._timers = timers
        self._behaviour = behaviour
        self._assignment = assignment
        self._jobs = jobs

    def register(
        self,
        owner: Account,
        repository: Repository | None,
        group: RunnerGroup,
        name: str,
        labels: Sequence[str],
    ) -> Runner:
        """Register a runner: listed at once, offline until its config is used."""
        now = self._clock.now()
        runner = Runner(
            id=self._world.next_id("runner"),
            name=name,
            owner=owner,
            repository=repository,
            group=group,
            labels=tuple(labels),
            matching=frozenset(label.lower() for label in labels),
            token=f"{self._rng.getrandbits(160):040x}",
            registered_at=now,
        )
        home = repository.runners if repository is not None else owner.runners
        home[runner.id] = runner
        self._world.runners[runner.id] = runner
        runner.history.append((now, "registered"))
        self._timers.at(
            now + self._behaviour.remove_offline_after, lambda: self._remove_if_long_offline(runner)
        )
        return runner

    def connect(self, runner: Runner, version: str | None) -> None:
        """Open the one session of a runner: it is online and idle."""
        now = self._clock.now()
        runner.session_at = now
        runner.version = version
        runner.os = "linux"
        runner.history.append((now, "online"))
        self.become_idle(runner)
        self.hear(runner)
        self._watch_silence(runner)

    def hear(self, runner: Runner) -> None:
        """Any word from a runner keeps it online; an idle one that was given up gets work again."""
        runner.last_seen = self._clock.now()
        if runner.job is None and runner.offered is None:
            self._assignment.offer(runner)

    def become_idle(self, runner: Runner) -> None:
        """Start the time after which, if so switched, an idle registration vanishes."""
        since = self._clock.now()
        runner.idle_since = since
        if self._behaviour.remove_idle_after is not None:
            due = since + self._behaviour.remove_idle_after
            self._timers.at(due, lambda: self._remove_if_idle(runner))

    def pick_up(self, runner: Runner) -> Job | None:
        """Give a polling runner the job it was assigned, if any; its lease begins."""
        job = runner.offered
        if job is None:
            return None
        self._jobs.pick_up(job, runner)
        self._watch_lease(runner)
        return job

    def finish(self, runner: Runner, job: Job, conclusion: str) -> None:
        """The runner reports the end of its job, and is removed: it was ephemeral."""
        self._jobs.complete(job, "cancelled" if job.cancel_requested else conclusion)
        self.remove(runner, "finished")

    def remove(self, runner: Runner, why: str) -> None:
        """Forget a registration; a job not yet picked up is queued again."""
        if runner.removed_at is not None:
            return
        job = self._assignment.retract(runner)
        runner.removed_at = self._clock.now()
        runner.removed_why = why
        runner.history.append((runner.removed_at, f"removed {why}"))
        home = runner.repository.runners if runner.repository is not None else runner.owner.runners
        home.pop(runner.id, None)
        del self._world.runners[runner.id]
        self._world.past_runners[runner.id] = runner
        runner.wake.set()
        if job is not None:
            self._jobs.requeue(job)

    def is_online(self, runner: Runner) -> bool:
        """Whether GitHub has heard from it lately, or it is on the line."""
        if runner.last_seen is None:
            return False
        return runner.polls > 0 or self._clock.now() - runner.last_seen <= self._patience(runner)

    def shown_busy(self, runner: Runner) -> bool:
        """`busy` as REST shows it: as it was `busy_lag` ago."""
        moment = self._clock.now() - self._behaviour.busy_lag
        shown = False
        for at, busy in runner.busy_changes:
            if at <= moment:
                shown = busy
        return shown

    def _patience(self, runner: Runner) -> timedelta:
        busy = runner.job is not None
        return self._behaviour.busy_offline_after if busy else self._behaviour.idle_offline_after

    def _watch_silence(self, runner: Runner) -> None:
        """Take a silent runner out of the assignment, and look again later."""
        if runner.removed_at is not None or runner.last_seen is None:
            return
        now = self._clock.now()
        patience = self._patience(runner)
        if not self.is_online(runner):
            job = self._assignment.retract(runner)
            if job is not None:
                self._jobs.requeue(job)
            self._timers.at(now + patience, lambda: self._watch_silence(runner))
            return
        heard = now if runner.polls else runner.last_seen
        self._timers.at(heard + patience + TICK, lambda: self._watch_silence(runner))

    def _watch_lease(self, runner: Runner) -> None:
        if runner.removed_at is not None or runner.job is None or runner.last_seen is None:
            return
        due = runner.last_seen + self._behaviour.lease
        if self._clock.now() < due:
            self._timers.at(due, lambda: self._watch_lease(runner))
            return
        self._jobs.complete(runner.job, "cancelled" if runner.job.cancel_requested else "failure")
        self.remove(runner, "lease_expired")

    def _remove_if_long_offline(self, runner: Runner) -> None:
        if runner.removed_at is not None:
            return
        now = self._clock.now()
        seen = now if runner.polls else runner.last_seen or runner.registered_at
        due = seen + self._behaviour.remove_offline_after
        if now < due or runner.job is not None:
            self._timers.at(
                max(due, now + self._behaviour.lease), lambda: self._remove_if_long_offline(runner)
            )
            return
        self.remove(runner, "offline_too_long")

    def _remove_if_idle(self, runner: Runner) -> None:
        if runner.removed_at is None and runner.job is None and runner.offered is None:
            self.remove(runner, "idle_too_long")
