"""What must hold at every instant and at the end, judged by the simulated world's own truth."""

import base64
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from controller.simulators.cluster.boards import UNREACHABLE
from controller.simulators.cluster.objects import NODES, PODS, SECRETS, Json
from controller.simulators.cluster.store import Change
from controller.simulators.github.state import Runner
from tests.simulation.reasons import Reasons
from tests.systems import BOARD_LABEL, System

ENTITY = "riseproject.dev/entity"
ENDED = ("Succeeded", "Failed")
STRANGE = ("large",)  # labels of which no pool's are all: nobody makes a runner, but GitHub may give them one

# States go forward only: every change of a status is judged by the database itself, whoever wrote it.
WATCH_STATES = """
CREATE TABLE went_back (what text NOT NULL);
CREATE TABLE went (what text NOT NULL, name text NOT NULL, status text NOT NULL);
CREATE FUNCTION judge_status() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ranks CONSTANT jsonb := '{"pending": 1, "running": 2, "completed": 3, "failed": 3}';
BEGIN
    IF OLD.status <> NEW.status AND (ranks->>NEW.status)::int <= (ranks->>OLD.status)::int THEN
        INSERT INTO went_back VALUES (TG_TABLE_NAME || ' ' || OLD.status || ' to ' || NEW.status);
    END IF;
    IF OLD.status <> NEW.status THEN
        INSERT INTO went VALUES (TG_TABLE_NAME, to_jsonb(NEW) ->> TG_ARGV[0], NEW.status);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER judge_jobs AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION judge_status('job_id');
CREATE TRIGGER judge_workers AFTER UPDATE ON workers FOR EACH ROW EXECUTE FUNCTION judge_status('name');
"""
# The events explain every transition; that a worker's pod runs is told by its row.
UNEXPLAINED = """
SELECT went.what || ' ' || went.name || ' became ' || went.status || ' without an event' AS what FROM went
WHERE went.what = 'jobs' AND NOT EXISTS (SELECT FROM events e WHERE e.job_id = went.name::bigint AND CASE went.status
    WHEN 'running' THEN e.kind IN ('workflow_job.in_progress', 'job.started')
    WHEN 'completed' THEN e.kind IN ('workflow_job.completed', 'job.completed')
    ELSE e.kind = 'job.failed' END)
UNION ALL SELECT went.what || ' ' || went.name || ' became ' || went.status || ' without one event' FROM went
WHERE went.what = 'workers' AND went.status IN ('completed', 'failed')
  AND 1 <> (SELECT count(*) FROM events e WHERE e.worker = went.name AND e.kind = 'worker.' || went.status)
UNION ALL SELECT 'workers ' || name || ' came without an event' FROM workers w WHERE NOT EXISTS (
    SELECT FROM events e WHERE e.worker = w.name AND e.kind IN ('worker.reserved', 'worker.adopted'))
UNION ALL SELECT 'jobs ' || job_id || ' came without an event' FROM jobs j WHERE NOT EXISTS (
    SELECT FROM events e WHERE e.job_id = j.job_id AND e.kind IN
        ('workflow_job.queued', 'workflow_job.in_progress', 'workflow_job.completed', 'job.learnt'))
"""
EVERYTHING_SAID = """
SELECT detail::text AS said FROM events UNION ALL SELECT failure_info::text FROM workers
UNION ALL SELECT failure_info::text FROM jobs UNION ALL SELECT note FROM holds
"""


@dataclass(slots=True)
class Invariants:
    """Collects what was broken; an empty list at the end is the proof."""

    system: System
    cap: int
    broken: list[str] = field(default_factory=list)
    excused: set[str] = field(default_factory=set)  # pods that somebody else ended
    _reasons: Reasons = field(init=False)
    _peace_since: datetime | None = None

    def __post_init__(self) -> None:
        self._reasons = Reasons(self.system)

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
            self._judge_slots(change)
        elif change.type == "MODIFIED" and _begins_to_end(change):
            self._judge_kill(change.object)

    def _judge_cap(self, change: Change) -> None:
        """An entity never has more live pods than its cap."""
        live = [pod for pod in self.system.cluster.pods() if pod["status"]["phase"] not in ENDED]
        counts = Counter(pod["metadata"]["labels"][ENTITY] for pod in live)
        entity = change.object["metadata"]["labels"][ENTITY]
        if counts[entity] > self.cap:
            self.broken.append(f"{change.at}: entity {entity} has {counts[entity]} live pods, cap {self.cap}")

    def _judge_slots(self, change: Change) -> None:
        """While no board comes or goes, a type of board never has more live pods than boards."""
        if self._peace_since is None:
            return
        board = change.object["metadata"]["labels"][BOARD_LABEL]
        nodes = {
            node["metadata"]["name"]
            for node in self.system.cluster.nodes()
            if node["metadata"]["labels"].get(BOARD_LABEL) == board
        }
        live = [
            pod
            for pod in self.system.cluster.pods()
            if pod["status"]["phase"] not in ENDED
            and pod["metadata"]["labels"][BOARD_LABEL] == board
            and pod["spec"].get("nodeName") in {None, *nodes}
        ]
        if len(live) > len(nodes):
            self.broken.append(f"{change.at}: {len(live)} live pods for {len(nodes)} boards of type {board}")

    def trouble(self) -> None:
        """Something breaks in this moment."""
        self._peace_since = None

    async def judge_now(self, *, at_peace: bool) -> None:
        """While nothing is broken, what a job is told about its wait is true, give or take what we cannot know yet."""
        now = self.system.clock.now()
        if not at_peace:
            self._peace_since = None
            self._reasons.forget()
            return
        self._peace_since = self._peace_since or now
        self.broken += await self._reasons.judge()

    def _judge_kill(self, pod: Json) -> None:
        """Nobody ends a pod whose runner works on a job, unless its board is gone."""
        name, board = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        node = self.system.cluster.store.find(NODES, "", board)
        if node is not None and any(taint["key"] == UNREACHABLE for taint in node["spec"].get("taints", ())):
            return
        runner = self.system.github.sim.world.runner_named(name)
        if name in self.excused:
            return
        if runner is not None and _works(runner) and pod["status"]["phase"] not in ENDED:
            self.broken.append(f"{self.system.clock.now()}: {name} was killed while it ran a job, on {board}")

    async def judge_end(self) -> list[str]:
        """After quiet time: everything agrees with GitHub, and nothing is left over."""
        broken = list(self.broken)
        broken += [row["what"] for row in await self.system.rows("SELECT what FROM went_back")]
        broken += [row["what"] for row in await self.system.rows(UNEXPLAINED)]
        broken += await self._told_secrets()
        ours = {row["job_id"]: row for row in await self.system.rows("SELECT * FROM jobs")}
        for truth in self.system.github.sim.ledger.jobs():
            row = ours.get(truth.job_id)
            if truth.status != "completed":
                broken.append(
                    f"job {truth.job_id} is {truth.status} at GitHub; here {row and row['skip_reason']}"
                )
            elif row is None and truth.started_at is not None and truth.labels != STRANGE:
                broken.append(f"job {truth.job_id} ran and has no row")
            elif row is not None and row["status"] not in ("completed", "failed"):
                broken.append(f"job {truth.job_id} ended at GitHub and is {row['status']} here")
            elif row is not None and row["status"] == "failed":
                broken.append(f"job {truth.job_id}: {truth.conclusion} there, here {row['failure_info']}")
            elif row is not None and row["conclusion"] != truth.conclusion:
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

    async def _told_secrets(self) -> list[str]:
        """No credential of a runner is in a row or in a pod's manifest."""
        store = self.system.cluster.store
        configs = {
            base64.b64decode(change.object["data"]["jitconfig"]).decode()
            for change in store.history
            if change.resource is SECRETS
        }
        said = [row["said"] or "" for row in await self.system.rows(EVERYTHING_SAID)]
        said += [str(change.object) for change in store.history if change.resource is PODS]
        everything = "\n".join(said)
        return [f"a credential was told: {config[:20]}" for config in configs if config in everything]


def _begins_to_end(change: Change) -> bool:
    """Whether this change is the one by which somebody ends the pod."""
    return _ending(change.object) and not (change.previous is not None and _ending(change.previous))


def _ending(pod: Json) -> bool:
    return pod["spec"].get("activeDeadlineSeconds") == 1 or "deletionTimestamp" in pod["metadata"]


def _works(runner: Runner) -> bool:
    return runner.job is not None and runner.job.status == "in_progress" and runner.removed_at is None
