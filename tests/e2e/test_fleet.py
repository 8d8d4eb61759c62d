"""Hundreds of boards and thousands of jobs on a real API server: kwok plays the boards' kubelets."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from hack.cluster.client import Cluster
from tests.e2e.crowd import a_crowd
from tests.e2e.history import node_of, recorded
from tests.e2e.nodes import nodes
from tests.e2e.systems import PATIENCE, System, a_pool, a_system
from tests.worlds import ORGANIZATION_APP

# The whole size where it is asked for, as `make e2e` does; else enough to go through every step many times at once.
FULL = bool(os.environ.get("SWITCHBOARD_E2E_FULL"))
BOARDS, JOBS = (500, 2_000) if FULL else (60, 240)
ORGANIZATIONS = JOBS // 40
BURSTS = 4
MAX_WORKERS = 8  # of one organization
FEW = JOBS // 50  # creations that the API server of a busy machine may answer too late
ENTITY_LABEL = "riseproject.dev/entity"


@pytest.mark.timeout(900)
async def test_bursts_of_jobs_finish_within_the_limits_and_leave_nothing_behind(
    own_cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    entities = {"default": {"maxWorkers": MAX_WORKERS}}
    names = [f"fleet-{number}" for number in range(BOARDS)]
    async with (
        nodes(own_cluster, names, "fleet"),
        a_system(
            own_cluster,
            database_url,
            tmp_path,
            pools=[a_pool("fleet", board="fleet")],
            timings={"podDeleteGrace": "10s"},
            entities=entities,
            limits={"provisionConcurrency": 20},
        ) as system,
        recorded(system) as history,
        a_crowd(system, history),
    ):
        repos = _organizations(system)
        ids: list[int] = []
        for _ in range(BURSTS):
            for repo in repos:
                ids += system.queue("fleet", jobs=JOBS // BURSTS // len(repos), seconds=0.5, repo=repo)
            await system.finished(ids)
        most = history.most(lambda pod: str(pod["metadata"]["labels"].get(ENTITY_LABEL, "")))
        assert (len(most), history.gaps) == (ORGANIZATIONS, 0)
        assert max(most.values()) == MAX_WORKERS  # reached, and never exceeded
        assert {system.github.sim.ledger.job(job_id).conclusion for job_id in ids} == {"success"}

        async def nothing_left() -> bool:
            live = await system.rows("SELECT 1 FROM workers WHERE status IN ('pending', 'running')")
            return not live and not await system.pods() and not await system.runner_secrets()

        await system.until(nothing_left)
        assert not system.github.sim.world.runners
        failed = await system.rows(
            "SELECT name, failure_reason, failure_info FROM workers WHERE status = 'failed'"
        )
        assert {row["failure_reason"] for row in failed} <= {"provision_failed"}, failed
        assert len(failed) <= FEW, failed
        assert set(history.most(node_of).values()) == {1}


def _organizations(system: System) -> list[str]:
    """As many organizations with a repository each; GitHub answers faster while nobody checks its answers.

    It has patience with our receiver: how busy this machine is is not what is tested.
    """
    sim = system.github.sim
    sim.validator = sim.webhook_validator = None
    sim.behaviour.answer_within = timedelta(seconds=PATIENCE)
    repos = []
    for number in range(ORGANIZATIONS):
        sim.add_organization(f"org-{number}", ORGANIZATION_APP)
        repos.append(f"org-{number}/code")
        sim.add_repository(repos[-1])
    return repos
