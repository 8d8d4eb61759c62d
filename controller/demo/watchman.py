"""Watches the simulated world for lost jobs, by its own truth and not by what the controller believes.

Only what the controller openly holds back (`/` says which boards and pools, and why) does not count as free.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.demo.fleet import BOARD_LABEL, POOLS
from controller.domain.durations import show_duration
from controller.ports import Clock
from controller.simulators.cluster import ClusterSimulator
from controller.simulators.cluster.boards import RESOURCE
from controller.simulators.github import GitHubSimulator
from controller.simulators.github.ledger import JobTruth

LOST_AFTER = timedelta(minutes=2)
LOOK_EVERY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Lost:
    """A job that nobody serves, or whose end nobody noticed."""

    job_id: int
    why: str


class Watchman:
    """Looks every few seconds whether a job has waited for long beside a free board that fits."""

    def __init__(
        self,
        github: GitHubSimulator,
        cluster: ClusterSimulator,
        clock: Clock,
        held: Callable[[], Awaitable[frozenset[str]]],
    ) -> None:
        self._github = github
        self._cluster = cluster
        self._clock = clock
        self._held = held
        self._free_since: dict[str, datetime] = {}
        self._lost: dict[int, Lost] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            self.look(await self._held())
            await self._clock.sleep(LOOK_EVERY)

    def look(self, held: frozenset[str]) -> None:
        """Note the pools that have had a free board all the time, and who waits beside one."""
        now = self._clock.now()
        free = self._free_boards(held)
        for pool in POOLS:
            if free.get(pool.name, 0) > 0 and pool.name not in held:
                self._free_since.setdefault(pool.name, now)
            else:
                self._free_since.pop(pool.name, None)
        self._lost.clear()  # who has been served since was only late, which is the machine's pace
        for job in self._github.ledger.jobs():
            since = self._free_since.get(_pool_of(job) or "")
            if job.status == "queued" and job.queued_at and since:
                waited = now - max(job.queued_at, since)
                if waited > LOST_AFTER:
                    why = f"queued for {show_duration(waited)} beside a free board"
                    self._lost[job.job_id] = Lost(job.job_id, why)

    def verdict(self, ours: Mapping[int, str]) -> list[Lost]:
        """All that was lost; `ours` says what the controller's rows say of each job."""
        now = self._clock.now()
        for job in self._github.ledger.jobs():
            ended = job.completed_at
            if job.status != "completed" or ended is None or now - ended <= LOST_AFTER:
                continue
            if job.started_at is None and job.job_id not in ours:
                continue  # cancelled before anybody heard of it
            if ours.get(job.job_id) not in ("completed", "failed"):
                why = f"ended there as {job.conclusion}, here {ours.get(job.job_id, 'unknown')}"
                self._lost[job.job_id] = Lost(job.job_id, why)
        return list(self._lost.values())

    def _free_boards(self, held: frozenset[str]) -> dict[str, int]:
        """Ready, schedulable boards without a live pod, by pool."""
        taken = held | {
            pod["spec"].get("nodeName")
            for pod in self._cluster.pods()
            if pod["status"]["phase"] not in ("Succeeded", "Failed")
        }
        free: dict[str, int] = {}
        for node in self._cluster.nodes():
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
            offers = int(node["status"]["allocatable"].get(RESOURCE, "0")) > 0
            if ready and offers and not node["spec"].get("unschedulable") and _name(node) not in taken:
                board = node["metadata"]["labels"].get(BOARD_LABEL, "")
                free[board] = free.get(board, 0) + 1
        return free


def _name(node: Mapping[str, Mapping[str, str]]) -> str:
    return node["metadata"]["name"]


def _pool_of(job: JobTruth) -> str | None:
    wanted = tuple(sorted(job.labels))
    return next((pool.name for pool in POOLS if tuple(sorted(pool.labels)) == wanted), None)
