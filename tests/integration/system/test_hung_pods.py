"""Pods that somebody deleted and that do not go: what is on their board cannot be ended."""

from datetime import timedelta
from pathlib import Path

from controller.simulators.cluster import Behaviour
from tests.systems import a_pool, a_system


async def test_a_pod_that_does_not_go_is_no_supply_for_ever(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(stop_time=timedelta(days=1)))
        (first,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(first)
        await system.step(20)
        (pod,) = system.cluster.pods()
        await system.controller.cluster.delete_pod(pod["metadata"]["name"])
        await system.step(40)
        system.cluster.add_board("rv1-2", {"riseproject.dev/board": "rv1"})
        ids = system.queue("acme/widgets", "rv1")
        for _ in range(30):
            await system.step(30)
        assert system.finished(ids)()
        (row,) = await system.rows(
            "SELECT status, failure_reason FROM workers WHERE name = %(name)s", name=pod["metadata"]["name"]
        )
        assert (row["status"], row["failure_reason"]) == ("failed", "pod_missing")
