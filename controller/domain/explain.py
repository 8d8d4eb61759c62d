"""Why a job is not running: made from stored rows alone. The page, the API and the command all say what this says.

Nothing is decided here a second time: the loop's stored reason is put into the words of `reasons`; for a job that was
never taken on, the outcome of its last delivery is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from controller.domain.deliveries import Outcome
from controller.domain.jobs import Job, JobStatus
from controller.domain.pages import EventRow, JobStory
from controller.domain.reasons import EXPLANATIONS, NO_BOARD_WORKS, JobFailure, Reason, Skip
from controller.domain.workers import Worker

IGNORED = "ignored"  # the state of a job that has no row
# What the reasons of private jobs may tell: the operators' settings, the boards, and how far it has got. Never names,
# labels or texts of the repository, nor what people wrote.
HARMLESS_DETAIL: Mapping[str, frozenset[str]] = {
    Skip.CANCELLED: frozenset({"attempts", "last_failure"}),
    Skip.GAVE_UP: frozenset({"attempts", "last_failure"}),
    Skip.NOT_CONFIRMED: frozenset({"why"}),
    Skip.NOT_ALLOWED: frozenset({"why"}),
    Skip.WRONG_APP: frozenset({"app", "entity_type"}),
    Skip.NO_POOL: frozenset({"nearest"}),
    Skip.HELD: frozenset({"scope", "target", "why", "until"}),
    Skip.BACKING_OFF: frozenset({"attempts", "last_failure", "until"}),
    Skip.NOT_PICKED_UP: frozenset({"workers"}),
    Skip.RUNNER_ON_ITS_WAY: frozenset({"workers", "stages", "names"}),
    Skip.ENTITY_AT_MAX_WORKERS: frozenset({"max_workers"}),
    Skip.NO_FREE_SLOTS: frozenset({"board", "boards", "states"}),
    Skip.GITHUB_BUDGET_LOW: frozenset({"why", "until"}),
    Skip.CLUSTER_UNKNOWN: frozenset({"why"}),
}
SKIPS = {reason.value: text for reason, text in EXPLANATIONS.items() if isinstance(reason, Skip)}
ABOUT_TO_START = (
    "A runner is about to be made for it.",
    "Nothing to do: it is looked at again within seconds.",
)
UNJUDGED_AFTER = timedelta(seconds=60)  # iterations come every few seconds
UNJUDGED = (
    "No runner has been made for it, and no reason why is stored: the controller is behind, or stands still.",
    "Operators: `/ready` shows the last error, and `switchboard doctor` checks what an iteration needs.",
)
LOSSES = {reason.value: text for reason, text in EXPLANATIONS.items() if isinstance(reason, JobFailure)}
FAULTS = {reason.value: text for reason, text in EXPLANATIONS.items() if isinstance(reason, Reason)}


@dataclass(frozen=True, slots=True)
class Explained:
    """One job's state in words."""

    job_id: int
    state: str  # a status of jobs, or `ignored`
    reason: str | None  # the name of the stored reason or outcome
    sentence: str
    next_step: str
    since: datetime | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""


def explain(job_id: int, story: JobStory, now: datetime, *, full: bool) -> Explained:
    """Say why; unless `full`, without anything that came from a private repository."""
    if story.job is not None:
        full = full or not story.job.private
        lost = _lost_worker(story)
        return (
            explain_job(story.job, now, full=full) if lost is None else _stranded(story.job, lost, full=full)
        )
    return explain_ignored(job_id, story.events, full=full or not belongs_to_private(story))


def belongs_to_private(story: JobStory) -> bool:
    """Whether a job's repository is private; without a row the deliveries say so, and silence means yes."""
    if story.job is not None:
        return story.job.private
    return any(event.detail.get("private") is not False for event in story.events)


def explain_job(job: Job, now: datetime, *, full: bool) -> Explained:
    """A job that has a row."""
    match job.status:
        case JobStatus.PENDING:
            return _waiting(job, now, full=full)
        case JobStatus.FAILED:
            info = job.failure_info if isinstance(job.failure_info, Mapping) else {}
            sentence, step = _worded(str(info.get("reason") or "failed"), LOSSES)
            message = str(info.get("message") or "") if full else ""
            reason = str(info.get("reason") or "failed")
            return _of(job, reason, sentence, step, since=job.completed_at, message=message)
        case JobStatus.RUNNING:
            where = f" on {job.runner_name}" if job.runner_name else ""
            return _of(job, None, f"It runs{where}.", "Nothing to do.", since=job.started_at)
        case JobStatus.COMPLETED:
            how = f": {job.conclusion.replace('_', ' ')}" if job.conclusion else ""
            return _of(job, None, f"GitHub has finished it{how}.", "Nothing to do.", since=job.completed_at)


def unjudged(job: Job, now: datetime) -> bool:
    """Whether a waiting job has stood there for longer than iterations take, without a decision about it."""
    since = max(job.seen_at, job.skip_since or job.seen_at)
    waits = job.status is JobStatus.PENDING and job.skip_reason is None and job.mark is None
    return waits and now - since > UNJUDGED_AFTER


def _lost_worker(story: JobStory) -> Worker | None:
    """The worker that a job ran on, if it has failed while GitHub still takes the job to be running."""
    if story.job is None or story.job.status is not JobStatus.RUNNING:
        return None
    workers = (row.worker for row in story.workers if row.worker.name == story.job.runner_name)
    return next((worker for worker in workers if worker.failure_reason), None)


def _stranded(job: Job, worker: Worker, *, full: bool) -> Explained:
    """A job whose worker is lost does not run, whatever GitHub believes for some minutes more."""
    reason = str(worker.failure_reason)
    sentence, step = _worded(reason, FAULTS)
    detail = {"node": worker.node, "worker": worker.name} if full else {}
    return _of(job, reason, sentence, step, since=worker.completed_at, detail=detail)


def _waiting(job: Job, now: datetime, *, full: bool) -> Explained:
    name = job.skip_reason or (job.mark.value if job.mark else None)
    if name is None:
        return _of(job, None, *(UNJUDGED if unjudged(job, now) else ABOUT_TO_START))
    sentence, step = _worded(name, SKIPS)
    if name == Skip.NO_FREE_SLOTS and _none_works(job.skip_detail):
        sentence, step = NO_BOARD_WORKS.sentence, NO_BOARD_WORKS.next_step
    detail = job.skip_detail if full else harmless(name, job.skip_detail)
    return _of(job, name, sentence, step, since=job.skip_since, detail=detail)


def explain_ignored(job_id: int, events: Iterable[EventRow], *, full: bool) -> Explained:
    """A job that was delivered but has no row: the last delivery's outcome in words."""
    told = [event for event in events if event.outcome is not None]
    outcome = told[-1].outcome if told else None
    detail = told[-1].detail if told else {}
    match outcome:
        case Outcome.IGNORED_NO_LABEL:
            sentence = f"Your labels{_listed(detail.get('labels')) if full else ''} match no pool."
            nearest = _listed(detail.get("nearest"))
            sentence += f" Nearest:{nearest}." if nearest else ""
            step = "Change `runs-on` in the workflow to exactly the labels of one pool, then re-run it."
        case Outcome.NOT_ALLOWED:
            known = EXPLANATIONS[Skip.NOT_ALLOWED]
            sentence, step = known.sentence, known.next_step
        case Outcome.IGNORED_NO_APP:
            sentence = "The delivery came from a GitHub App that is not configured here."
            step = "Ask the operators which App to install for this account."
        case Outcome.JOB_NOT_FOUND:
            sentence = "It ended before it was ever seen queued, so no runner was made for it."
            step = "Nothing to do; re-run it if a result is wanted."
        case _:
            sentence = "It was delivered but not taken on."
            step = (
                "Its events, on the page of the job, tell what arrived; re-run the job if a result is wanted."
            )
    return Explained(job_id, IGNORED, outcome, sentence, step, told[-1].at if told else None)


def harmless(reason: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    """What of a private job's reason everybody may see; of a reason that a newer program stored, nothing."""
    allowed = HARMLESS_DETAIL.get(reason, frozenset())
    return {name: value for name, value in detail.items() if name in allowed}


def _none_works(detail: Mapping[str, Any]) -> bool:
    """Whether every board was counted, and none of them is at work or free for it."""
    states = detail.get("states")
    return isinstance(states, Mapping) and not any(
        states.get(state) for state in ("busy", "free", "promised")
    )


def _of(job: Job, reason: str | None, sentence: str, step: str, **more: Any) -> Explained:
    return Explained(job.job_id, job.status.value, reason, sentence, step, **more)


def _worded(name: str, table: Mapping[str, Any]) -> tuple[str, str]:
    """The sentence and next step of a reason; one that a newer program stored is shown by its name."""
    known = table.get(name)
    if known is None:
        return f"{name.replace('_', ' ').capitalize()}.", ""
    return known.sentence, known.next_step


def _listed(labels: object) -> str:
    return f" [{', '.join(map(str, labels))}]" if isinstance(labels, list) else ""
