"""How long workers take from stage to stage, read from their rows as they change between two iterations."""

from collections.abc import Mapping
from datetime import datetime

from controller.domain.workers import Worker
from controller.telemetry.milestones import Milestones


class Stages:
    """Remembers the rows of the last iteration; what was reached before the first is not counted again."""

    def __init__(self, milestones: Milestones) -> None:
        self._milestones = milestones
        self._before: Mapping[str, Worker] | None = None

    def note(self, rows: Mapping[str, Worker]) -> None:
        """Count the stages that were reached since the last call."""
        if self._before is not None:
            for worker in rows.values():
                self._compare(self._before.get(worker.name), worker)
        self._before = dict(rows)

    def _compare(self, before: Worker | None, worker: Worker) -> None:
        known = _stages(before) if before is not None else {}
        for stage, (since, until) in _stages(worker).items():
            if stage not in known:
                self._milestones.stage(stage, since, until)


def _stages(worker: Worker) -> dict[str, tuple[datetime, datetime]]:
    """The stages of which both ends are known."""
    ends = {
        "running": (worker.pod_at, worker.running_at),
        "online": (worker.running_at, worker.online_at),
        "started": (worker.online_at or worker.running_at, worker.job_started_at),
    }
    return {stage: (since, until) for stage, (since, until) in ends.items() if since and until}
