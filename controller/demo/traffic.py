"""What people do in the demo: pushes all the time, bursts now and then, re-runs, cancellations; a flaky board."""

import random
from datetime import timedelta

from controller.demo.failures import CRASH_LOG
from controller.demo.fleet import FLAKY_BOARD, POOLS, repositories
from controller.ports import Clock
from controller.simulators.cluster import Behaviour, ClusterSimulator
from controller.simulators.github import GitHubSimulator, JobSpec

PUSH_EVERY = 6.5  # seconds, on average
PATIENCE = 24  # jobs that wait: nobody pushes into a longer queue, however slow the machine is
BURST_CHANCE = 0.05
CANCEL_CHANCE = 0.02
FAILURE_CHANCE = 0.08
WORK = (10.0, 45.0)  # seconds that a job takes
FLAKY_FOR, SOUND_FOR = timedelta(seconds=60), timedelta(seconds=90)
NAMES = ("build", "test", "lint", "bench", "package")


class Traffic:
    """Queues jobs until cancelled."""

    def __init__(self, github: GitHubSimulator, clock: Clock, rng: random.Random) -> None:
        self._github = github
        self._clock = clock
        self._rng = rng

    async def run(self) -> None:
        """Push for ever, but not into a queue that is long already."""
        while True:
            if self._waiting() < PATIENCE:
                self._push()
            await self._clock.sleep(timedelta(seconds=self._rng.expovariate(1 / PUSH_EVERY)))

    def _waiting(self) -> int:
        return sum(job.status == "queued" for job in self._github.world.jobs.values())

    def _push(self) -> None:
        count = self._rng.randint(6, 12) if self._rng.random() < BURST_CHANCE else self._rng.randint(1, 3)
        run = self._github.queue_run(
            self._rng.choice(repositories()), [self._job(number) for number in range(count)]
        )
        if self._rng.random() < CANCEL_CHANCE:
            self._github.cancel_run(run.id)

    def _job(self, number: int) -> JobSpec:
        pool = self._rng.choices(POOLS, weights=[pool.share for pool in POOLS])[0]
        conclusion = "failure" if self._rng.random() < FAILURE_CHANCE else "success"
        name = f"{self._rng.choice(NAMES)} ({number + 1})"
        return JobSpec(pool.labels, self._rng.uniform(*WORK), name, conclusion)


async def trouble(cluster: ClusterSimulator, clock: Clock) -> None:
    """One board's runners crash at the start for a minute, then it is sound again, for ever."""
    while True:
        await clock.sleep(SOUND_FOR)
        cluster.set_board_behaviour(FLAKY_BOARD, Behaviour(crash=1, last_words=CRASH_LOG))
        await clock.sleep(FLAKY_FOR)
        cluster.set_board_behaviour(FLAKY_BOARD, Behaviour())
