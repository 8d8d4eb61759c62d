"""A controller that is killed, at every point where something has happened outside that a row may not know of.

The process is real, and it is killed by SIGKILL while a simulator holds its next request, or the answer to its last.
A new process then takes over; what it finds, and what becomes of it:

| killed after          | is left                               | is finished by                                      |
|-----------------------|---------------------------------------|-----------------------------------------------------|
| the reservation       | a row                                 | OrphanSweep: there is no such pod, so the row ends  |
| the JIT call          | also a runner, maybe not in the row   | the same; the runner is found by name and deleted   |
| the Secret            | also a Secret                         | the same; the Secret is deleted                     |
| the pod               | also a pod that the row does not know | PodPhaseSync sees the pod and the worker goes on;   |
|                       |                                       | the pod is made the owner of its Secret             |
| the ownerReference    | the same, but for the Secret          | the same                                            |
| the intent's commit   | a row with an intent                  | HealthChecks: the kill begins again                 |
| the runner's deletion | the same, and a pod without a runner  | the same: a runner that is gone already is fine     |
| the deadline patch    | the same, and a pod that ends         | PodPhaseSync: the row fails by the intent's reason  |

What is begun by two processes or twice by one is done once: names are unique, and every effect may be repeated.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from controller.simulators.github.faults import Faults
from tests.grounds import QUICK
from tests.integration.processes.stages import SLOW, Stage, a_stage, ending

pytestmark = pytest.mark.timeout(600)  # real processes on a machine that may be busy

JIT = "actions/generate-runner-jitconfig-for-org"


@dataclass(frozen=True, slots=True)
class Point:
    """Which request is held, and whether before or after its effect."""

    where: Literal["github", "cluster"]
    operation: str
    hold: Literal["before", "after"]

    def faults(self, stage: Stage) -> Faults:
        """The rules of the side that is asked."""
        return stage.github.sim.faults if self.where == "github" else stage.cluster.faults


PROVISIONING = {
    "the reservation": Point("github", JIT, "before"),
    "the JIT call, unheard": Point("github", JIT, "after"),
    "the JIT call": Point("cluster", "create secrets", "before"),
    "the Secret": Point("cluster", "create pods", "before"),
    "the pod": Point("cluster", "patch secrets", "before"),
    "the ownerReference": Point("cluster", "patch secrets", "after"),
}
KILLING = {
    "the intent's commit": Point("github", "actions/delete-self-hosted-runner-from-org", "before"),
    "the runner's deletion": Point("cluster", "get pods", "before"),
    "the deadline patch": Point("cluster", "patch pods", "after"),
}


async def victim_of(stage: Stage, point: Point) -> str:
    """Run a controller until it is held there, and kill it; the worker that it was busy with."""
    async with stage.child() as first:
        held = point.faults(stage).add(operation=point.operation, hold=point.hold)
        stage.queue()
        await held.wait_held()
        await first.kill()
    held.release(drop=True)
    return next(iter(await stage.workers()))  # the first; the same iteration may have made another


async def stray_ends(stage: Stage, name: str) -> list[str]:
    """What of this worker nobody answers for."""
    row, pod, secret = (await stage.workers())[name], stage.pods().get(name), stage.secrets().get(name)
    found = []
    if secret is not None and not secret["metadata"].get("ownerReferences"):
        found.append("the Secret has no owner")
    if row["status"] in ("completed", "failed"):
        if name in stage.registered():
            found.append("the row has ended, its runner has not")
        if not ending(pod):
            found.append("the row has ended, its pod has not")
    elif pod is None:
        found.append("the row lives without a pod")
    return found


@pytest.mark.parametrize("point", PROVISIONING.values(), ids=PROVISIONING)
async def test_killed_while_provisioning_after(point: Point, database_url: str, tmp_path: Path) -> None:
    async with a_stage(database_url, tmp_path) as stage:
        name = await victim_of(stage, point)
        async with stage.child() as second:
            await second.iterated(2)
            assert await stray_ends(stage, name) == []
            await stage.comes_to_rest()


@pytest.mark.parametrize("point", KILLING.values(), ids=KILLING)
async def test_killed_while_killing_after(point: Point, database_url: str, tmp_path: Path) -> None:
    async with a_stage(database_url, tmp_path, boards=1) as stage:
        stage.treat(SLOW)
        name = await victim_of(stage, point)
        stage.treat(QUICK)
        async with stage.child() as second:
            await second.iterated(2)
            assert await stray_ends(stage, name) == []
            assert (await stage.workers())[name]["failure_reason"] == "pod_stuck_pending"
            await stage.comes_to_rest()
