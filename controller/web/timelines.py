"""The way of a job and of a worker as steps with durations, from what `shown` lets the reader see."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controller.web.shown import Shown

MEANINGS = {
    "Queued": "GitHub queued the job.",
    "Seen": "Its delivery arrived here.",
    "Reserved": "A runner was decided on for it.",
    "JIT config": "GitHub gave out the runner's credential, good for one job.",
    "Pod made": "Kubernetes accepted the runner's pod.",
    "Pod running": "The image is on the board and the runner has started.",
    "Online": "The runner has reported to GitHub.",
    "Started": "GitHub gave the job to a runner.",
    "Finished": "GitHub finished the job.",
    "Ended": "The runner's pod is over.",
}
LEAST_SHARE = 1.5  # per cent; a part that took no time is still to be seen


@dataclass(frozen=True, slots=True)
class Stage:
    """A step on the way: when it came, and how long after the one before."""

    name: str
    at: datetime | None
    took: timedelta | None  # None: it has not come, or nothing came before it
    state: str  # done, next or open

    @property
    def means(self) -> str:
        """What the step is, in a sentence."""
        return MEANINGS.get(self.name, "")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a job's time, as a share of the whole."""

    name: str
    took: timedelta
    start: float  # per cent
    width: float


def job_stages(job: Shown, worker: Shown | None) -> list[Stage]:
    """queued → seen → reserved → JIT → pod → running → online → started → finished."""
    made = worker or {}
    online, started = made.get("online_at"), job["started_at"]
    told_late = bool(made and started and (online is None or online > started))
    times = [
        ("Queued", job["created_at"]),
        ("Seen", job["seen_at"]),
        ("Reserved", made.get("created_at")),
        ("JIT config", made.get("jit_at")),
        ("Pod made", made.get("pod_at")),
        ("Pod running", made.get("running_at")),
        ("Online", None if told_late else online),
        ("Started", started),
        ("Finished", job["completed_at"]),
    ]
    stages = staged(times, ended=job["status"] in ("completed", "failed"))
    if told_late:  # a runner that has a job was online, whenever the list of runners says so
        return [replace(stage, state="done") if stage.name == "Online" else stage for stage in stages]
    return stages


def worker_stages(worker: Shown) -> list[Stage]:
    """reserved → JIT → pod → running → online → ended."""
    times = [
        ("Reserved", worker["created_at"]),
        ("JIT config", worker["jit_at"]),
        ("Pod made", worker["pod_at"]),
        ("Pod running", worker["running_at"]),
        ("Online", worker["online_at"]),
        ("Ended", worker["completed_at"]),
    ]
    return staged(times, ended=worker["status"] in ("completed", "failed"))


def staged(times: Sequence[tuple[str, datetime | None]], *, ended: bool) -> list[Stage]:
    """Give each step its duration; a step that never came although a later one did stays open."""
    last_known = max((place for place, (_, at) in enumerate(times) if at is not None), default=-1)
    stages: list[Stage] = []
    before: datetime | None = None
    for place, (name, at) in enumerate(times):
        took = max(timedelta(), at - before) if at is not None and before is not None else None
        coming = place == last_known + 1 and not ended
        stages.append(Stage(name, at, took, "done" if at is not None else "next" if coming else "open"))
        before = at if at is not None and (before is None or at > before) else before
    return stages


def job_parts(job: Shown, worker: Shown | None, now: datetime) -> list[Part]:
    """How a job's time divides into waiting, the start of its runner, and work."""
    started, ended = job["started_at"], job["completed_at"]
    over = ended or now
    reserved = worker["created_at"] if worker else None
    began = min(max(reserved, job["created_at"]), started or over) if reserved else started or over
    times = [("waited", began - job["created_at"])]
    if reserved:
        times.append(("runner start", (started or over) - began))
    if started:
        times.append(("ran", over - started))
    return parted([(name, max(timedelta(), took)) for name, took in times])


def parted(times: Iterable[tuple[str, timedelta]]) -> list[Part]:
    """Shares of the whole, none so small that it cannot be seen."""
    known = list(times)
    whole = sum((took for _, took in known), timedelta()) or timedelta(seconds=1)
    widths = [max(LEAST_SHARE, 100 * (took / whole)) for _, took in known]
    scale = 100 / sum(widths)
    parts, start = [], 0.0
    for (name, took), width in zip(known, widths, strict=True):
        parts.append(Part(name, took, round(start, 2), round(width * scale, 2)))
        start += width * scale
    return parts
