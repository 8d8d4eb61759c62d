"""`scheduling: fair` through the whole system: 500 jobs of one owner, 3 of another behind them, 4 boards.

With `fair` the three begin within the next four endings, so after one job of the large owner and its turnaround at
most. With `fifo` they stand behind all 500.
"""

from pathlib import Path

import pytest

from tests.systems import a_pool, a_system

BOARDS = 4


@pytest.mark.parametrize("scheduling", ["fair", "fifo"])
async def test_three_jobs_behind_five_hundred(database_url: str, tmp_path: Path, scheduling: str) -> None:
    async with a_system(
        database_url,
        tmp_path,
        pools=[a_pool("rv1")],
        boards={"rv1": BOARDS},
        scheduling=scheduling,
        entities={"default": {"maxWorkers": None}},
    ) as system:
        large = system.queue("acme/widgets", "rv1", jobs=500, seconds=30)
        ledger = system.github.sim.ledger
        await system.until(lambda: sum(ledger.job(n).status == "in_progress" for n in large) == BOARDS)
        small = system.queue("jane/one", "rv1", jobs=3, seconds=30)
        await system.settle()
        before = sum(ledger.job(n).status == "completed" for n in large)
        for _ in range(24):
            await system.step()
            if all(ledger.job(n).status != "queued" for n in small):
                break
        ended = sum(ledger.job(n).status == "completed" for n in large) - before
        begun = sum(ledger.job(n).status != "queued" for n in small)
        if scheduling == "fair":
            assert (begun, ended <= BOARDS) == (3, True)
        else:
            assert (begun, ended > BOARDS) == (0, True)
