"""Hours of a fleet in virtual time, with faults at every boundary and two replicas: nothing is lost.

`SIMULATION_SEEDS=1,2,3 SIMULATION_HOURS=24` runs more of it; `make simulate` does.
"""

import os
import random
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from controller.app import Controller, World, open_controller
from controller.gateways.postgres.intake import Intake
from controller.simulators.github import JobSpec
from controller.simulators.github.jobs import run_state
from controller.simulators.github.routes.workflows import RERUN
from controller.telemetry.metrics import Metrics
from tests.postgres import opened
from tests.simulation.faults import Trouble, soon
from tests.simulation.invariants import STRANGE, Invariants
from tests.systems import BOARD_LABEL, System, a_pool, a_system

SEEDS = [int(seed) for seed in os.environ.get("SIMULATION_SEEDS", "1").split(",")]
HOURS = float(os.environ.get("SIMULATION_HOURS", "0.5"))
STEP = timedelta(seconds=10)
CAP = 3
QUIET = timedelta(hours=3)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_is_lost(seed: int, database_url: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    pools = [a_pool("rv1"), a_pool("rv1-large", ["rv1", "large"], board="rv1"), a_pool("rv2")]
    more = {
        "entities": {"default": {"maxWorkers": CAP}},
        "timings": {"podDeleteGrace": "30m", "idleTimeout": "5m"},
    }
    async with (
        a_system(database_url, tmp_path, pools=pools, boards={"rv1": 3, "rv2": 2}, **more) as system,
        AsyncExitStack() as stack,
    ):
        for repo in ("acme/kernel",):
            system.github.sim.add_repository(repo)
        other = await stack.enter_async_context(_another(system, database_url, tmp_path))
        _vary(system, rng)
        invariants = Invariants(system, CAP)
        await invariants.install()
        boards = {
            node["metadata"]["name"]: node["metadata"]["labels"][BOARD_LABEL]
            for node in system.cluster.nodes()
        }
        trouble = Trouble(system, rng, boards, invariants.excused.add)
        await _days(system, other, trouble, invariants, rng)
        await trouble.stop()
        _approve(system, all_of_them=True)
        _forget_strangers(system)
        await _until_quiet(system, other, invariants)
        broken = await invariants.judge_end()
        assert not broken, "\n".join([*broken, "", *trouble.log])


class _another:
    """A second replica: it stands by, and leads whenever the first has lost the database."""

    def __init__(self, system: System, url: str, directory: Path) -> None:
        self._system = system
        self._url = url
        self._directory = directory
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Controller:
        database = await self._stack.enter_async_context(opened(self._url))
        world = World(self._system.clock, random.Random(9), self._directory / "kubeconfig")
        file = self._system.file
        intake = Intake(database, file.catalogue)
        opening = open_controller(file, database, intake, world, Metrics())
        controller = await self._stack.enter_async_context(opening)
        self._stack.push_async_callback(controller.beside.stop)
        return controller

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()


def _vary(system: System, rng: random.Random) -> None:
    """GitHub is not always the same."""
    behaviour = system.github.sim.behaviour
    behaviour.busy_lag = timedelta(seconds=rng.choice((0, 30, 60)))
    behaviour.remove_idle_after = rng.choice((None, timedelta(minutes=5)))
    behaviour.shuffle_lists = rng.random() < 0.5
    behaviour.numeric_links = rng.random() < 0.5
    behaviour.absent_runner_is_zero = rng.random() < 0.5
    behaviour.assign_at_random = rng.random() < 0.5


async def _days(
    system: System, other: Controller, trouble: Trouble, invariants: Invariants, rng: random.Random
) -> None:
    """People push, runs are cancelled and run again, and now and then something breaks."""
    end = system.clock.now() + timedelta(hours=HOURS)
    strike_at = system.clock.now() + soon(rng)
    while system.clock.now() < end:
        if rng.random() < 0.15:
            _push(system, rng)
        if system.clock.now() >= strike_at:
            invariants.trouble()
            await trouble.strike()
            strike_at = system.clock.now() + soon(rng)
        if rng.random() < 0.02:
            _rerun(system, rng)
        if rng.random() < 0.02:
            _approve(system)
        await _step(system, other)
        await invariants.judge_now(at_peace=trouble.at_peace)


def _push(system: System, rng: random.Random) -> None:
    labels = rng.choice((("rv1",), ("rv1", "large"), ("rv2",)))
    jobs = [_a_job(labels, rng) for _ in range(rng.choice((1, 1, 2, 5)))]
    if rng.random() < 0.1:
        jobs.append(JobSpec(STRANGE, rng.choice((10, 240, 1800))))
    repos = sorted(each.full_name for each in system.github.sim.world.repositories.values())
    run = system.github.sim.queue_run(rng.choice(repos), jobs)
    if rng.random() < 0.1:
        system.github.sim.cancel_run(run.id)
    elif rng.random() < 0.1:
        system.github.sim.cancel_job(run.jobs[0].id)


def _a_job(labels: tuple[str, ...], rng: random.Random) -> JobSpec:
    conclusion = "failure" if rng.random() < 0.1 else "success"
    return JobSpec(labels, rng.uniform(5, 240), conclusion=conclusion, waiting=rng.random() < 0.05)


def _rerun(system: System, rng: random.Random) -> None:
    """Somebody has the failed jobs of a run that has ended run again: the same run, new job ids."""
    ended = [run for run in system.github.sim.world.runs.values() if run_state(run)[0] == "completed"]
    failed = [run for run in ended if any(job.conclusion in RERUN for job in run.latest_jobs())]
    if failed:
        system.github.sim.rerun_failed(rng.choice(failed).id)


def _approve(system: System, *, all_of_them: bool = False) -> None:
    waiting = [job.id for job in system.github.sim.world.jobs.values() if job.status == "waiting"]
    for job_id in waiting if all_of_them else waiting[:1]:
        system.github.sim.approve(job_id)


def _forget_strangers(system: System) -> None:
    """Cancel the jobs that nobody makes a runner for and that no other's has come to."""
    for job in list(system.github.sim.world.jobs.values()):
        if job.spec.labels == STRANGE and job.status == "queued":
            system.github.sim.cancel_job(job.id)


async def _step(system: System, other: Controller) -> None:
    """Both replicas go round, in the order in which they stand."""
    await system.step(STEP.total_seconds())
    await other.loop.turn()
    await other.beside.idle()
    await system.settle()


async def _until_quiet(system: System, other: Controller, invariants: Invariants) -> None:
    """Everything is mended: let what was begun end, and the grace period of the pods pass."""
    end = system.clock.now() + QUIET
    while system.clock.now() < end:
        await _step(system, other)
        await invariants.judge_now(at_peace=True)
        if await _nothing_left(system):
            return


async def _nothing_left(system: System) -> bool:
    live = await system.rows("SELECT 1 FROM jobs WHERE status IN ('pending', 'running') LIMIT 1")
    runners = [each for each in system.github.sim.ledger.runners() if each.removed_at is None]
    return not live and not system.cluster.pods() and not runners
