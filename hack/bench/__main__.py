"""`make bench`: all figures; `--quick` for small sizes, as CI runs it; `--pages --jobs N` for pages over N jobs."""

import argparse
import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hack.bench.figures import Figure, table
from hack.bench.provisioning import burst, latency, turnaround
from hack.bench.reading import LIVE_WORKERS, idle_iteration, pages, webhooks
from hack.bench.rig import Rig, a_rig


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    samples: int
    burst: int
    jobs: int
    deliveries: int
    waiting: tuple[int, ...]
    boards: int


FULL = Sizes(
    samples=100, burst=1_000, jobs=1_000_000, deliveries=2_000, waiting=(5_000, 10_000), boards=1_000
)
QUICK = Sizes(samples=20, burst=100, jobs=50_000, deliveries=300, waiting=(1_000, 2_000), boards=100)


async def _figures(sizes: Sizes) -> AsyncIterator[Figure]:
    """Each measurement in a rig of its own, so that none inherits what another left behind."""
    some = sizes.samples * 2 + 10
    async with _rig(organizations=2, boards=some) as rig:
        async for figure in latency(rig, sizes.samples):
            yield figure
    async with _rig(organizations=50, boards=sizes.burst + 60) as rig:
        async for figure in burst(rig, sizes.burst):
            yield figure
    async with _rig(organizations=10, boards=20) as rig:
        async for figure in turnaround(rig, 15):
            yield figure
    async with _rig(organizations=50, boards=sizes.boards) as rig:
        async for figure in idle_iteration(rig, sizes.waiting, sizes.boards, 5):
            yield figure
    async with _rig(organizations=50, boards=0) as rig:
        async for figure in webhooks(rig, sizes.deliveries, 16):
            yield figure
    async for figure in _reading(sizes):
        yield figure


async def _reading(sizes: Sizes) -> AsyncIterator[Figure]:
    async with _rig(organizations=50, boards=LIVE_WORKERS) as rig:
        async for figure in pages(rig, sizes.jobs, sizes.samples):
            yield figure


@asynccontextmanager
async def _rig(*, organizations: int, boards: int) -> AsyncIterator[Rig]:
    """A rig in a directory that goes with it."""
    with tempfile.TemporaryDirectory(prefix="switchboard-bench-") as directory:
        os.chmod(directory, 0o755)  # noqa: S103 -- PostgreSQL may run as another user
        async with a_rig(Path(directory), organizations=organizations, boards=boards) as rig:
            yield rig


async def main() -> int:
    """Measure, print as it goes, and the whole table at the end."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--quick", action="store_true", help="small sizes: whether it runs, not how fast")
    parser.add_argument("--jobs", type=int, help="how many finished jobs the pages are read over")
    parser.add_argument("--pages", action="store_true", help="only the pages")
    given = parser.parse_args()
    sizes = QUICK if given.quick else FULL
    if given.jobs is not None:
        sizes = replace(sizes, jobs=given.jobs)
    figures = []
    async for figure in _reading(sizes) if given.pages else _figures(sizes):
        print(f"  {figure.name}: {figure.value:.1f} {figure.unit}", flush=True)
        figures.append(figure)
    print(f"\n{table(figures)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
