"""`scheduling: fair` through the whole system: 500 jobs of one owner, 3 of another behind them, 4 boards.

With `fair` the small owner has a claim to half of the boards: two of its jobs begin within the next 4 endings, the
third when one of these ends, so within two job lengths and turnarounds. With `fifo` they stand behind all 500.
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
        for _ in range(36):
            await system.step()
            if all(ledger.job(n).status != "queued" for n in small):
                break
        ended = sum(ledger.job(n).status == "completed" for n in large) - before
        begun = sum(ledger.job(n).status != "queued" for n in small)
        if scheduling == "fair":
            assert (begun, ended <= 2 * BOARDS) == (3, True)
        else:
            assert (begun, ended > 2 * BOARDS) == (0, True)
