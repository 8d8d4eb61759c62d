"""Many readers beside a running loop: they wait for each other, and jobs wait for none of them."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.children import PATIENCE
from tests.integration.processes.stages import Stage, a_stage, finished
from tests.worlds import plain_http

pytestmark = pytest.mark.timeout(600)  # real processes on a machine that may be busy

AT_ONCE, JOBS = 50, 3
HELD_UP_SECONDS = 2.0
ADDRESSES = ("/", "/jobs?text=x")


async def hold_up_readers(stage: Stage) -> None:
    """Again and again lock what every overview reads, and the loop writes once a minute only."""
    while True:
        async with stage.database.transaction() as connection:
            await connection.execute("LOCK TABLE board_snapshots IN ACCESS EXCLUSIVE MODE")
            await asyncio.sleep(HELD_UP_SECONDS)


async def test_a_job_finishes_while_fifty_read_every_page_slowly(database_url: str, tmp_path: Path) -> None:
    """The loop has two connections: readers that shared them would keep it from coming round."""
    async with (
        a_stage(database_url, tmp_path, database={"maxConnections": 2}) as stage,
        stage.child() as child,
        httpx.AsyncClient(base_url=child.url, transport=plain_http(), timeout=PATIENCE) as http,
    ):
        await child.iterated(1)
        answers: Counter[tuple[str, int]] = Counter()

        async def read(address: str) -> None:
            while True:
                answers[address, (await http.get(address)).status_code] += 1

        async with asyncio.TaskGroup() as group:
            others = [group.create_task(read(address)) for address in ADDRESSES for _ in range(AT_ONCE)]
            others.append(group.create_task(hold_up_readers(stage)))
            for _ in range(JOBS):
                (job_id,) = stage.queue()
                await finished(stage, job_id)
            for other in others:
                other.cancel()
        for address in ADDRESSES:
            assert (await http.get(address)).status_code == 200
        assert {status for _, status in answers} <= {200, 503}  # whoever waits for too long is told so
        assert not child.said("iteration.crashed") + child.said("step.left_out")
