"""The order in which a new leader takes up work, and a doorbell that breaks while everything else goes on."""

from pathlib import Path

import pytest

from tests.grounds import QUICK
from tests.integration.processes.stages import SLOW, TIMINGS, a_stage, finished
from tests.integration.processes.test_killed import JIT, KILLING

pytestmark = pytest.mark.timeout(600)  # real processes on a machine that may be busy

CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE starts_with(query, 'LISTEN') AND datname = current_database()
"""
NOWHERE = "http://127.0.0.1:9/webhook"


async def test_a_listener_that_dies_while_health_answers_comes_back_and_an_iteration_runs(
    database_url: str, tmp_path: Path
) -> None:
    """Nothing but the doorbell wakes this controller for a job: it would sleep for a minute, until its next pull."""
    timings = {**TIMINGS, "pollInterval": "1h"}
    async with a_stage(database_url, tmp_path, timings=timings) as stage, stage.child() as child:
        await child.iterated(1)
        await child.says("listener.connected")
        await child.calm()
        await stage.rows(CUT)
        (job_id,) = stage.queue()  # its ring is lost
        await child.says("listener.lost")
        await finished(stage, job_id)
        assert len(child.said("listener.connected")) == 2
        (job_id,) = stage.queue()
        await finished(stage, job_id)


async def test_a_new_leader_pulls_then_finishes_intents_then_orphans_and_then_resumes(
    database_url: str, tmp_path: Path
) -> None:
    async with a_stage(database_url, tmp_path, boards=3) as stage:
        stage.treat(SLOW)
        async with stage.child() as first:
            intent, orphan = KILLING["the intent's commit"], stage.github.sim.faults
            killing = intent.faults(stage).add(operation=intent.operation, hold=intent.hold)
            stage.queue()
            await killing.wait_held()
            reserving = orphan.add(operation=JIT, hold="before")
            stage.queue()
            await reserving.wait_held()
            await first.kill()
        killing.release(drop=True)
        reserving.release(drop=True)
        receiver, stage.github.sim.webhook_url = stage.github.sim.webhook_url, NOWHERE
        stage.queue()  # nobody hears of it
        await stage.github.sim.settle()
        stage.github.sim.webhook_url = receiver
        stage.treat(QUICK)
        before = len(stage.github.sim.requests)
        async with stage.child() as second:
            await stage.comes_to_rest()
            steps = [line["step"] for line in second.said("leader.preparing")]
        assert steps == ["pull_deliveries", "finish_intents", "reconcile_orphans"]
        asked = [each.operation for each in list(stage.github.sim.requests)[before:]]
        order = [
            "apps/list-webhook-deliveries",
            "apps/get-webhook-delivery",
            "actions/delete-self-hosted-runner-from-org",
            "actions/list-self-hosted-runners-for-org",  # by the orphan's name
            JIT,
        ]
        assert [each for each in dict.fromkeys(asked) if each in order] == order
