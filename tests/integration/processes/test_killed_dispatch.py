"""A controller that is killed while it starts a workflow: its successor starts it, or finds that it was started.

| killed                              | GitHub has   | the row has        | the successor              |
|-------------------------------------|--------------|--------------------|----------------------------|
| before GitHub acted                 | no run       | the request, noted | looks, and asks again      |
| before GitHub's answer came         | a run        | the same           | looks, and finds the run   |
| before what GitHub said was written | the same     | the same           | the same                   |
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from controller.simulators.github import JobSpec
from controller.simulators.github.state import Run
from tests.grounds import POOL
from tests.integration.processes.stages import REPO, Stage, a_stage
from tests.waiting import until

pytestmark = pytest.mark.timeout(600)  # real processes on a machine that may be busy

DISPATCH = "actions/create-workflow-dispatch"
NIGHTLY = {
    "name": "nightly",
    "type": "one_shot",
    "spec": "2026-01-01T01:30:00Z",  # a time in the past means now
    "action": "dispatch",
    "with": {"repo": REPO, "workflow": "nightly.yml", "ref": "main"},
}
LOCK = "SELECT id FROM occurrences FOR UPDATE"
WAITS = "SELECT 1 FROM pg_locks WHERE NOT granted"
# Nothing but the three minutes that a lease lasts: no test waits for them.
LEASE_RAN_OUT = "UPDATE occurrences SET leased_until = now() WHERE status = 'running' RETURNING sent_at"

Point = Callable[[Stage], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def before_github_acted(stage: Stage) -> AsyncIterator[None]:
    """The request has arrived, and nothing more."""
    held = stage.github.sim.faults.add(operation=DISPATCH, hold="before")
    await held.wait_held()
    yield
    held.release(drop=True)


@asynccontextmanager
async def before_the_answer(stage: Stage) -> AsyncIterator[None]:
    """The run is there."""
    held = stage.github.sim.faults.add(operation=DISPATCH, hold="after")
    await held.wait_held()
    yield
    held.release(drop=True)


@asynccontextmanager
async def before_the_commit(stage: Stage) -> AsyncIterator[None]:
    """The answer has come, and writing it waits for a row that somebody else holds."""
    held = stage.github.sim.faults.add(operation=DISPATCH, hold="before")
    await held.wait_held()
    async with stage.database.transaction() as connection:
        await connection.execute(LOCK)
        held.release(drop=False)

        async def waits() -> bool:
            return bool(await stage.rows(WAITS))

        await until(waits)
        yield


def started(stage: Stage) -> list[Run]:
    return [run for run in stage.github.sim.world.runs.values() if run.event == "workflow_dispatch"]


async def completed(stage: Stage) -> dict[str, Any]:
    """Wait until the occurrence is; its row."""

    async def done() -> bool:
        return bool(await stage.rows("SELECT 1 FROM occurrences WHERE status = 'completed'"))

    await until(done)
    (row,) = await stage.rows("SELECT * FROM occurrences")
    return row


@pytest.mark.parametrize(
    ("point", "runs", "requests"),
    [(before_github_acted, 0, 2), (before_the_answer, 1, 1), (before_the_commit, 1, 1)],
    ids=["before GitHub acted", "before the answer", "before the commit"],
)
async def test_a_workflow_is_started_once_though_the_process_was_killed(
    database_url: str, tmp_path: Path, point: Point, runs: int, requests: int
) -> None:
    async with a_stage(database_url, tmp_path, schedules=[NIGHTLY]) as stage:
        stage.github.sim.add_workflow(REPO, "nightly.yml", [JobSpec((POOL,), 0.1)])
        async with stage.child() as first, point(stage):
            await first.kill()
        assert len(started(stage)) == runs
        (noted,) = await stage.rows(LEASE_RAN_OUT)
        assert noted["sent_at"] is not None
        async with stage.child():
            row = await completed(stage)
            (run,) = started(stage)
            assert row["run_id"] == run.id
            assert sum(each.operation == DISPATCH for each in stage.github.sim.requests) == requests
            await stage.comes_to_rest()
        assert started(stage) == [run]
