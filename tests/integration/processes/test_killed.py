"""A controller that is killed, at every point where something has happened outside that a row may not know of.

The process is real, and it is killed by SIGKILL while a simulator holds its next request, or the answer to its last.
A new process then takes over; what it finds, and what becomes of it:

| killed after        | is left                                   | is finished by                                         |
|---------------------|-------------------------------------------|--------------------------------------------------------|
| the reservation     | a row                                     | OrphanSweep: no such pod, so the row ends              |
| the JIT call        | a row, a runner that the row may not know | the same, and its runner is found by name and deleted  |
| the Secret          | a row, a runner, a Secret                 | the same, and its Secret is deleted                    |
| the pod             | a pod that the row does not know, and a   | PodPhaseSync sees the pod, the worker goes on; the pod |
|                     | Secret that nobody owns                   | is made the Secret's owner                             |
| the ownerReference  | a pod that the row does not know          | PodPhaseSync sees the pod, the worker goes on          |
| the intent's commit | a row with an intent                      | HealthChecks: the kill begins again                    |
| the runner's        | a row with an intent, a live pod          | the same: the runner is gone already, which is fine    |
|   deletion          |                                           |                                                        |
| the deadline patch  | a row with an intent, a pod that ends     | PodPhaseSync: the row fails with the intent's reason   |

What is begun by two processes or twice by one is done once: names are unique, and every effect may be repeated.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from controller.simulators.github.faults import Faults
from tests.integration.processes.stages import QUICK, SLOW, Stage, a_stage

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
    "the Secret, unheard": Point("cluster", "create secrets", "after"),
    "the Secret": Point("cluster", "create pods", "before"),
    "the pod, unheard": Point("cluster", "create pods", "after"),
    "the pod": Point("cluster", "patch secrets", "before"),
    "the ownerReference": Point("cluster", "patch secrets", "after"),
}
KILLING = {
    "the intent's commit": Point("github", "actions/delete-self-hosted-runner-from-org", "before"),
    "the runner's deletion, unheard": Point("github", "actions/delete-self-hosted-runner-from-org", "after"),
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
    (name,) = await stage.workers()
    return name


async def stray_ends(stage: Stage, name: str) -> list[str]:
    """What of this worker nobody answers for."""
    row, pod, secret = (await stage.workers())[name], stage.pods().get(name), stage.secrets().get(name)
    found = []
    if secret is not None and not secret["metadata"].get("ownerReferences"):
        found.append("the Secret has no owner")
    if row["status"] in ("completed", "failed"):
        if name in stage.registered():
            found.append("the row has ended, its runner has not")
        if pod is not None and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            if pod["spec"].get("activeDeadlineSeconds") != 1:
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
    async with a_stage(database_url, tmp_path) as stage:
        stage.treat(SLOW)
        name = await victim_of(stage, point)
        stage.treat(QUICK)
        async with stage.child() as second:
            await second.iterated(2)
            assert await stray_ends(stage, name) == []
            assert (await stage.workers())[name]["failure_reason"] == "pod_stuck_pending"
            await stage.comes_to_rest()
