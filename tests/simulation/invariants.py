"""What must hold at every instant and at the end, judged by the simulated world's own truth."""

from collections import Counter
from dataclasses import dataclass, field

from controller.simulators.cluster.boards import UNREACHABLE
from controller.simulators.cluster.objects import NODES, PODS, Json
from controller.simulators.cluster.store import Change
from controller.simulators.github.state import Runner
from tests.systems import System

ENTITY = "riseproject.dev/entity"
ENDED = ("Succeeded", "Failed")

# States go forward only: every change of a status is judged by the database itself, whoever wrote it.
WATCH_STATES = """
CREATE TABLE went_back (what text NOT NULL);
CREATE FUNCTION judge_status() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ranks CONSTANT jsonb := '{"pending": 1, "running": 2, "completed": 3, "failed": 3}';
BEGIN
    IF OLD.status <> NEW.status AND (ranks->>NEW.status)::int <= (ranks->>OLD.status)::int THEN
        INSERT INTO went_back VALUES (TG_TABLE_NAME || ' ' || OLD.status || ' to ' || NEW.status);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER judge_jobs AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION judge_status();
CREATE TRIGGER judge_workers AFTER UPDATE ON workers FOR EACH ROW EXECUTE FUNCTION judge_status();
"""


@dataclass(slots=True)
class Invariants:
    """Collects what was broken; an empty list at the end is the proof."""

    system: System
    cap: int
    broken: list[str] = field(default_factory=list)

    async def install(self) -> None:
        """Listen to every change of the cluster and of the rows."""
        async with self.system.database.transaction() as connection:
            await connection.execute(WATCH_STATES)
        self.system.cluster.store.listeners.append(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource is not PODS:
            return
        if change.type == "ADDED":
            self._judge_cap(change)
        elif change.type == "MODIFIED" and _begins_to_end(change):
            self._judge_kill(change.object)

    def _judge_cap(self, change: Change) -> None:
        """An entity never has more live pods than its cap."""
        live = [pod for pod in self.system.cluster.pods() if pod["status"]["phase"] not in ENDED]
        counts = Counter(pod["metadata"]["labels"][ENTITY] for pod in live)
        entity = change.object["metadata"]["labels"][ENTITY]
        if counts[entity] > self.cap:
            self.broken.append(f"{change.at}: entity {entity} has {counts[entity]} live pods, cap {self.cap}")

    def _judge_kill(self, pod: Json) -> None:
        """Nobody ends a pod whose runner works on a job, unless its board is gone."""
        name, board = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        node = self.system.cluster.store.find(NODES, "", board)
        if node is not None and any(taint["key"] == UNREACHABLE for taint in node["spec"].get("taints", ())):
            return
        runner = self.system.github.sim.world.runner_named(name)
        if runner is not None and _works(runner) and pod["status"]["phase"] not in ENDED:
            self.broken.append(f"{self.system.clock.now()}: {name} was killed while it ran a job, on {board}")

    async def judge_end(self) -> list[str]:
        """After quiet time: everything agrees with GitHub, and nothing is left over."""
        broken = list(self.broken)
        broken += [row["what"] for row in await self.system.rows("SELECT what FROM went_back")]
        ours = {row["job_id"]: row for row in await self.system.rows("SELECT * FROM jobs")}
        for truth in self.system.github.sim.ledger.jobs():
            row = ours.get(truth.job_id)
            if truth.status != "completed":
                broken.append(
                    f"job {truth.job_id} is {truth.status} at GitHub; here {row and row['skip_reason']}"
                )
            elif row is None and truth.started_at is not None:
                broken.append(f"job {truth.job_id} ran and has no row")
            elif row is not None and row["status"] not in ("completed", "failed"):
                broken.append(f"job {truth.job_id} ended at GitHub and is {row['status']} here")
            elif row is not None and row["status"] == "completed" and row["conclusion"] != truth.conclusion:
                broken.append(f"job {truth.job_id}: {truth.conclusion} there, {row['conclusion']} here")
        for table in ("jobs", "workers"):
            live = {
                k: v for k, v in (await self.system.statuses(table)).items() if k in ("pending", "running")
            }
            if live:
                broken.append(f"{table} left over: {live}")
        broken += [f"pod left over: {pod['metadata']['name']}" for pod in self.system.cluster.pods()]
        broken += [
            f"Secret left over: {name}" for name in await self.system.controller.cluster.list_secrets()
        ]
        runners = [r.name for r in self.system.github.sim.ledger.runners() if r.removed_at is None]
        broken += [f"runner left over: {name}" for name in runners]
        return broken


def _begins_to_end(change: Change) -> bool:
    """Whether this change is the one by which somebody ends the pod."""
    return _ending(change.object) and not (change.previous is not None and _ending(change.previous))


def _ending(pod: Json) -> bool:
    return pod["spec"].get("activeDeadlineSeconds") == 1 or "deletionTimestamp" in pod["metadata"]


def _works(runner: Runner) -> bool:
    return runner.job is not None and runner.job.status == "in_progress" and runner.removed_at is None
