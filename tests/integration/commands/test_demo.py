"""`switchboard demo` as people start it, for a short time."""

import re

from tests.children import run


async def test_the_demo_runs_a_fleet_and_ends_with_a_summary_and_nothing_lost() -> None:
    done = await run("demo", "--for", "10s", "--speed", "20", "--port", "0", within=100)
    assert re.search(r"Switchboard is at http://127\.0\.0\.1:\d+/", done.out), done.err
    summary = done.out[done.out.index("jobs queued") :]
    queued, finished, lost = (
        int(re.search(rf"jobs {word}\s+(\d+)", summary)[1])  # type: ignore[index]
        for word in ("queued", "finished", "lost")
    )
    assert (done.code, lost) == (0, 0), summary
    assert 0 < finished <= queued
    assert re.search(r"wait p50 / p95\s+\S+.* / \S+", summary)
    assert "runners failed" in summary
