"""Whether what a waiting job is told is true, judged by the simulated world; the controller may lag behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from controller.domain.reasons import Skip
from controller.simulators.cluster.objects import Json
from tests.systems import BOARD_LABEL, System

ENDED = ("Succeeded", "Failed")
WAITING = """
SELECT job_id, entity_id, entity_name, repo, labels, pool, mark, skip_reason, skip_detail, retry_after FROM jobs
WHERE status = 'pending' ORDER BY job_id
"""
LIVE = """
SELECT w.name, w.entity_id, w.repo, w.labels, w.pool, w.ending_reason, w.status, j.job_id
FROM workers w LEFT JOIN jobs j ON j.runner_name = w.name
WHERE w.status IN ('pending', 'running') OR (w.pod_at IS NOT NULL AND w.pod_ended_at IS NULL)
"""
HELD = "SELECT target FROM holds WHERE scope = 'board' AND (until IS NULL OR until > %(now)s)"
SOON = timedelta(seconds=90)
LAGS = {  # until GitHub is asked again although no webhook came
    Skip.NOT_CONFIRMED: timedelta(minutes=3),
    Skip.INSTALLATION_SUSPENDED: timedelta(minutes=7),
    Skip.NOT_PICKED_UP: timedelta(minutes=5),
    Skip.RUNNER_ON_ITS_WAY: timedelta(minutes=17),
    Skip.ENTITY_AT_MAX_WORKERS: timedelta(minutes=3),
}


@dataclass(slots=True)
class Reasons:
    """Remembers since when each job has been told something that is not so."""

    system: System
    _false_since: dict[tuple[int, str | None], datetime] = field(default_factory=dict)

    def forget(self) -> None:
        """Something is broken: nothing is held against the controller."""
        self._false_since.clear()

    async def judge(self) -> list[str]:
        """What has been untrue for too long."""
        now = self.system.clock.now()
        workers = await self.system.rows(LIVE)
        held = {row["target"] for row in await self.system.rows(HELD, now=now)}
        false: dict[tuple[int, str | None], datetime] = {}
        broken = []
        for job in await self.system.rows(WAITING):
            told = job["job_id"], job["skip_reason"]
            if self._true(job, workers, held, now):
                continue
            since = false[told] = self._false_since.get(told, now)
            lag = LAGS.get(job["skip_reason"], SOON)
            if lag < now - since <= lag + SOON:
                broken.append(
                    f"{now}: job {told[0]} is told {told[1]} {job['skip_detail']}, untrue since {since}"
                )
        self._false_since = false
        return broken

    def _true(
        self, job: Mapping[str, Any], workers: list[dict[str, Any]], held: set[str], now: datetime
    ) -> bool:
        truth = self.system.github.sim.ledger.job(job["job_id"])
        if truth.status not in ("queued", "waiting"):
            return True  # what is true of a job that does not wait any more is another matter
        until = job["skip_detail"].get("until")
        retry_after: datetime | None = job["retry_after"]
        match job["skip_reason"]:
            case Skip.CANCELLED | Skip.GAVE_UP:
                return bool(job["mark"] == job["skip_reason"])
            case Skip.NOT_CONFIRMED:
                return truth.status == "waiting"
            case Skip.INSTALLATION_SUSPENDED:
                account = self.system.github.sim.world.account_by_id(job["entity_id"])
                return account is not None and account.installation.suspended_at is not None
            case Skip.BACKING_OFF:
                return retry_after is not None and retry_after > now
            case Skip.HELD | Skip.GITHUB_BUDGET_LOW:
                return until is None or datetime.fromisoformat(until) > now
            case Skip.RUNNER_ON_ITS_WAY | Skip.NOT_PICKED_UP:
                return any(
                    _free(worker) and _alike(worker, job) and not self._works_already(worker)
                    for worker in workers
                )
            case Skip.ENTITY_AT_MAX_WORKERS:
                holding = [worker for worker in workers if worker["entity_id"] == job["entity_id"]]
                return len(holding) >= int(job["skip_detail"]["max_workers"])
            case Skip.NO_FREE_SLOTS:
                return self._free_boards(job["skip_detail"]["board"], workers, held) <= 0
            case _:  # none, though nothing is made; the cluster, though it answers; what nobody does here
                return False

    def _works_already(self, worker: Mapping[str, Any]) -> bool:
        """Whether GitHub has given its runner a job, whatever we have heard of it."""
        runner = self.system.github.sim.world.runner_named(worker["name"])
        return runner is not None and runner.job is not None

    def _free_boards(self, board: str, workers: list[dict[str, Any]], held: set[str]) -> int:
        live = [pod for pod in self.system.cluster.pods() if pod["status"]["phase"] not in ENDED]
        taken = {pod["spec"].get("nodeName") for pod in live}
        free = [
            name
            for node in self.system.cluster.nodes()
            if node["metadata"]["labels"].get(BOARD_LABEL) == board
            and (name := node["metadata"]["name"]) not in taken | held
            and _works(node)
        ]
        there = {pod["metadata"]["name"] for pod in live}
        coming = [w for w in workers if w["name"] not in there and w["pool"].startswith(board)]
        unplaced = [
            pod
            for pod in live
            if not pod["spec"].get("nodeName") and pod["metadata"]["labels"][BOARD_LABEL] == board
        ]
        return len(free) - len(coming) - len(unplaced)


def _works(node: Json) -> bool:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
    return ready and not node["spec"].get("unschedulable") and not node["spec"].get("taints")


def _free(worker: Mapping[str, Any]) -> bool:
    live = worker["status"] in ("pending", "running")
    return live and worker["ending_reason"] is None and worker["job_id"] is None


def _alike(worker: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    same = worker["entity_id"] == job["entity_id"] and worker["labels"] == job["labels"]
    return same and worker["repo"] in (None, job["repo"])
