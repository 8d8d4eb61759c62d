"""Effects that happened while their answer was lost, at every call that changes something; the controller lives.

The same points as those at which a controller is killed (`tests/integration/processes/test_killed.py`).
"""

from datetime import timedelta
from pathlib import Path

import pytest

from controller.simulators.cluster import Behaviour
from tests.integration.processes.proxies import a_proxy
from tests.integration.processes.stages import Stage
from tests.integration.processes.test_killed import stray_ends
from tests.leftovers import loose_ends
from tests.systems import System, a_pool, a_system

DELETION = "actions/delete-self-hosted-runner-from-org"
TIMINGS = {"podDeleteGrace": "60s", "podPendingTimeout": "60s"}
PROVISIONING = {
    "the JIT call": ("github", "actions/generate-runner-jitconfig-for-org"),
    "the Secret": ("cluster", "create secrets"),
    "the pod": ("cluster", "create pods"),
    "the ownerReference": ("cluster", "patch secrets"),
}
KILLING = {
    "the runner's deletion": ("github", DELETION),
    "the deadline patch": ("cluster", "patch pods"),
}
COMMITS = {
    "the reservation": (b"INSERT INTO workers", b"COMMIT"),
    "the runner's note": (b"SET group_id",),  # one statement, which is a transaction by itself
    "the pod's note": (b"SET create_rv",),
    "the intent": (b"SET ending_reason", b"COMMIT"),
    "the worker's failure": (b"SET status = 'failed'", b"COMMIT"),
}


def lose(system: System, where: str, operation: str) -> None:
    """Let the effect of the next such request happen, and its answer be lost."""
    faults = system.github.sim.faults if where == "github" else system.cluster.faults
    faults.add(operation=operation, drop="after", times=1, name="lost")


def lost(system: System) -> bool:
    """Whether that has happened."""
    rules = (system.github.sim.faults.rules, system.cluster.faults.rules)
    return any(rule.name == "lost" and rule.hits for each in rules for rule in each.values())


def stall(system: System) -> None:
    """No image comes down any more: a pod there is stuck, until it is killed for that."""
    system.cluster.set_board_behaviour("rv1-1", Behaviour(fail_to_pull="*"))


async def comes_right(system: System) -> None:
    """After two more iterations nothing is left that nobody answers for."""
    for _ in range(2):
        await system.step()
    stage = Stage(system.github, system.cluster, system.database, {})
    strays = {name: await stray_ends(stage, name) for name in await stage.workers()}
    assert {name: found for name, found in strays.items() if found} == {}


async def rests(system: System) -> None:
    """Let time pass until every job has finished and nothing is left; a quarter of an hour at most."""
    for _ in range(90):
        if not await loose_ends(system.github, system.cluster, system.database):
            return
        await system.step(10)
    assert await loose_ends(system.github, system.cluster, system.database) == []


@pytest.mark.parametrize(("where", "operation"), PROVISIONING.values(), ids=PROVISIONING)
async def test_an_answer_lost_while_provisioning(
    where: str, operation: str, database_url: str, tmp_path: Path
) -> None:
    pools, boards = [a_pool("rv1")], {"rv1": 1}
    async with a_system(database_url, tmp_path, pools=pools, boards=boards, timings=TIMINGS) as system:
        lose(system, where, operation)
        system.queue("acme/widgets", "rv1")
        await system.step()
        assert lost(system)
        await comes_right(system)
        await rests(system)


async def test_a_runner_that_works_already_when_its_create_is_given_up_goes_on(
    database_url: str, tmp_path: Path
) -> None:
    pools, boards = [a_pool("rv1")], {"rv1": 1}
    async with a_system(database_url, tmp_path, pools=pools, boards=boards, timings=TIMINGS) as system:
        lose(system, "cluster", "create pods")
        deletion = system.github.sim.faults.add(operation=DELETION, hold="before")
        (job_id,) = system.queue("acme/widgets", "rv1", seconds=300)
        await system.settle()
        await system.controller.loop.turn()
        await deletion.wait_held()
        await system.clock.advance(timedelta(seconds=30))
        await system.settle()
        assert system.github.sim.ledger.job(job_id).status == "in_progress"
        deletion.release(drop=False)
        await rests(system)
        assert await system.statuses("workers") == {"completed": 1}
        assert system.github.sim.ledger.job(job_id).conclusion == "success"
        assert await system.rows("SELECT 1 FROM jobs WHERE attempts > 0") == []


async def test_a_create_that_nobody_answers_for_while_github_is_silent_too_is_looked_into_later(
    database_url: str, tmp_path: Path
) -> None:
    """The pod may be there, and its runner at work by the time anybody could ask."""
    pools, boards = [a_pool("rv1")], {"rv1": 1}
    async with a_system(database_url, tmp_path, pools=pools, boards=boards, timings=TIMINGS) as system:
        lose(system, "cluster", "create pods")
        system.github.sim.faults.add(operation=DELETION, status=502, times=3)
        system.queue("acme/widgets", "rv1")
        await rests(system)
        assert await system.statuses("workers") == {"completed": 1}


@pytest.mark.parametrize(("where", "operation"), KILLING.values(), ids=KILLING)
async def test_an_answer_lost_while_killing(
    where: str, operation: str, database_url: str, tmp_path: Path
) -> None:
    pools, boards = [a_pool("rv1")], {"rv1": 1}
    async with a_system(database_url, tmp_path, pools=pools, boards=boards, timings=TIMINGS) as system:
        stall(system)
        lose(system, where, operation)
        system.queue("acme/widgets", "rv1")
        await system.until(lambda: lost(system))
        await comes_right(system)
        system.cluster.set_board_behaviour("rv1-1", Behaviour())
        await rests(system)
        (first, *_) = await system.rows("SELECT failure_reason FROM workers ORDER BY created_at")
        assert first["failure_reason"] == "pod_stuck_pending"


@pytest.mark.parametrize("statements", COMMITS.values(), ids=COMMITS)
async def test_an_answer_of_the_database_lost_after_its_commit(
    statements: tuple[bytes, ...], database_url: str, tmp_path: Path
) -> None:
    pools, boards = [a_pool("rv1")], {"rv1": 1}
    async with (
        a_proxy(database_url) as proxy,
        a_system(proxy.url, tmp_path, pools=pools, boards=boards, timings=TIMINGS) as system,
    ):
        stall(system)
        proxy.lose_answer(*statements)
        system.queue("acme/widgets", "rv1")
        await system.until(lambda: proxy.answers_lost > 0)
        await comes_right(system)
        system.cluster.set_board_behaviour("rv1-1", Behaviour())
        await rests(system)
