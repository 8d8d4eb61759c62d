"""`helm upgrade` and `helm rollback` between this program and the one before it, while jobs run on real boards."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path

import pytest

from hack.cluster.client import Cluster
from tests.chart.helm import CHART, ROOT
from tests.e2e.history import node_of, recorded
from tests.e2e.previous import migrations_of, previous_program
from tests.e2e.releases import Release, a_release
from tests.e2e.systems import a_pool

POOLS = [a_pool("rv1"), a_pool("bench", board="bench")]
BENCH, SLOTS = 4, 6  # of the board that takes several jobs at once, and of all
SHORT, PAUSE = 2.0, 3.0  # seconds
MORE = 6


@pytest.mark.timeout(1_200)
async def test_no_job_is_lost_on_the_way_to_this_program_and_back(
    own_cluster: Cluster, empty_database_url: str, tmp_path: Path
) -> None:
    previous = previous_program(tmp_path)
    chart = previous / CHART.relative_to(ROOT)
    programs = {"previous": previous, "present": ROOT}
    async with a_release(
        own_cluster, empty_database_url, tmp_path, programs=programs, pools=POOLS
    ) as release:
        system = release.system
        await release.install("previous", chart if chart.is_dir() else CHART)
        assert await applied(release) == migrations_of(previous)
        async with recorded(system) as history:
            ids = await while_jobs_run(release, release.install("present"))
            assert await applied(release) == migrations_of(ROOT) > migrations_of(previous)
            ids += await while_jobs_run(release, release.roll_back(1))
            ids += system.queue("rv1", jobs=2)
            await system.finished(ids)
            assert release.leaders() == ["previous", "present", "previous"]
            jobs = [system.github.sim.ledger.job(job_id) for job_id in ids]
            assert {job.conclusion for job in jobs} == {"success"}
            # Each job had one runner and each runner one job: none was ended at work, and none was made twice.
            assert sorted(str(job.runner_name) for job in jobs) == sorted(history.created)
            assert history.most(node_of).total() <= SLOTS

            async def all_ended() -> bool:
                return await system.statuses("workers") == {"completed": len(ids)}

            await system.until(all_ended)


async def while_jobs_run(release: Release, change: Coroutine[None, None, None]) -> list[int]:
    """Change the program while jobs run that outlast it and others come and go, until another leads; their ids."""
    system, led = release.system, len(release.leaders())
    ledger, faults = system.github.sim.ledger, system.github.sim.faults
    unfinished = faults.add(operation="runner/finish", status=503, times=None)
    lasting = system.queue("bench", jobs=BENCH)
    ids = [*lasting]

    async def all_run() -> bool:
        query = "SELECT 1 FROM jobs WHERE job_id = ANY(%(ids)s) AND status = 'running'"
        return len(await system.rows(query, ids=lasting)) == BENCH

    await system.until(all_run)
    runners = [ledger.runner(str(ledger.job(job_id).runner_name)).runner_id for job_id in lasting]
    unfinished.path = f"/({'|'.join(map(str, runners))})/"  # the others may end
    task = asyncio.create_task(change)
    for _ in range(MORE):
        ids += system.queue("rv1", seconds=SHORT)
        await asyncio.wait([task], timeout=PAUSE)
    await task

    async def taken_over() -> bool:
        return len(release.leaders()) > led

    await system.until(taken_over)
    assert {ledger.job(job_id).status for job_id in lasting} == {"in_progress"}
    faults.remove(unfinished.name)
    await system.finished(lasting)  # they leave their board to those of the next change
    return ids


async def applied(release: Release) -> set[int]:
    """The migrations that the database has."""
    return {row["version"] for row in await release.system.rows("SELECT version FROM migrations")}
