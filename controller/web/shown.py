"""From rows to what the reader may see. Pages and JSON are made from these values alone, never from the rows.

Of private repositories the entity and the ids are shown, with states, times and numbers; no name, address or text
that came from the repository, its jobs or their logs. Whoever is signed in sees those too (`sees_private`).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from controller.domain.constants import HEARTBEAT_EVERY
from controller.domain.explain import Explained, explain_job, unjudged
from controller.domain.jobs import Entity, Job, JobStatus
from controller.domain.pages import FOR_EVER, BoardRow, EventRow, HoldRow, UsageRow, WorkerRow
from controller.domain.reasons import EXPLANATIONS, Reason
from controller.domain.workers import Worker
from controller.web.wording import in_figures

Shown = dict[str, Any]

SILENT_AFTER = 3 * HEARTBEAT_EVERY
REASONS = {reason.value: text for reason, text in EXPLANATIONS.items() if isinstance(reason, Reason)}


def show_job(job: Job, now: datetime, *, sees_private: bool = False) -> Shown:
    """A job with why it waits, or why it was lost."""
    open_ = sees_private or not job.private
    waited_until = job.started_at or job.completed_at or now
    return {
        "job_id": job.job_id,
        **_entity(job.entity),
        "private": job.private,
        "hidden": not open_,
        "repo": job.repo if open_ else None,
        "name": job.name if open_ else None,
        "html_url": _safe_url(job.html_url) if open_ else None,
        "run_id": job.run_id if open_ else None,
        "run_attempt": job.run_attempt,
        "labels": list(job.labels),
        "pool": job.pool,
        "status": job.status.value,
        "conclusion": job.conclusion,
        "mark": job.mark.value if job.mark else None,
        "runner_name": job.runner_name,
        "attempts": job.attempts,
        "retry_after": job.retry_after if job.status is JobStatus.PENDING else None,
        "created_at": job.created_at,
        "seen_at": job.seen_at,
        "started_at": job.started_at,
        "completed_at": job.completed_at,
        "wait_seconds": _seconds(waited_until - job.created_at),
        "run_seconds": _seconds((job.completed_at or now) - job.started_at) if job.started_at else None,
        "unjudged": unjudged(job, now),
        "reason": _waiting(job, now, open_=open_),
        "failure": _loss(job, now, open_=open_),
    }


def show_explained(found: Explained) -> Shown:
    """Why a job is as it is, as `/api/jobs/{id}/explain` has it."""
    return {
        "job_id": found.job_id,
        "state": found.state,
        "reason": found.reason,
        "sentence": found.sentence,
        "figures": in_figures(found.reason or "", found.detail),
        "next_step": found.next_step,
        "since": found.since,
        "detail": dict(found.detail),
        "message": found.message,
    }


def _waiting(job: Job, now: datetime, *, open_: bool) -> Shown | None:
    found = show_explained(explain_job(job, now, full=open_))
    if job.status is not JobStatus.PENDING or found["reason"] is None:
        return None
    return {name: found[name] for name in ("reason", "sentence", "next_step", "since", "detail")}


def _loss(job: Job, now: datetime, *, open_: bool) -> Shown | None:
    if job.status is not JobStatus.FAILED:
        return None
    found = show_explained(explain_job(job, now, full=open_))
    return {name: found[name] for name in ("reason", "sentence", "next_step", "message")}


def show_worker(row: WorkerRow, now: datetime, *, sees_private: bool = False) -> Shown:
    """A worker with why it failed."""
    worker, open_ = row.worker, sees_private or not row.private
    told = open_ and (sees_private or not may_have_had_any_job(worker))
    ended = worker.completed_at or now
    return {
        "name": worker.name,
        **_entity(worker.entity),
        "private": row.private,
        "hidden": not told,
        "repo": worker.repo if open_ else None,
        "labels": list(worker.labels),
        "pool": worker.pool,
        "image": worker.image,
        "node": worker.node,
        "status": worker.status.value,
        "made_for": worker.made_for,
        "job_id": worker.job_id,
        "runner_version": worker.runner_version,
        "ending": _explained(worker.ending_reason, REASONS) if worker.ending_reason else None,
        "created_at": worker.created_at,
        "jit_at": worker.jit_at,
        "pod_at": worker.pod_at,
        "running_at": worker.running_at,
        "online_at": worker.online_at,
        "completed_at": worker.completed_at,
        "age_seconds": _seconds(ended - worker.created_at),
        "failure_reason": worker.failure_reason,
        "failure": _explained(worker.failure_reason, REASONS) if worker.failure_reason else None,
        "failure_info": show_failure_info(worker.failure_info, hidden=not told),
    }


def may_have_had_any_job(worker: Worker) -> bool:
    """Whether GitHub may have given it a job that nobody has told us of: any of its organization's, private or not."""
    return worker.online_at is not None and worker.job_id is None and worker.repo is None


def show_failure_info(info: object, *, hidden: bool) -> Shown | None:
    """What was kept of a failed pod, in one form; of private ones codes and counts only."""
    if not isinstance(info, Mapping):
        return None
    containers = [
        {
            "name": str(one.get("name") or ""),
            "exit_code": one.get("exit_code"),
            "reason": str(one.get("reason") or ""),
            "message": "" if hidden else str(one.get("message") or ""),
            "restart_count": one.get("restart_count") or 0,
        }
        for one in _mappings(info.get("containers"))
    ]
    if hidden:
        return {"reason": None, "message": "", "containers": containers, "log_tail": "", "events": []}
    return {
        **info,
        "reason": info.get("reason"),
        "message": str(info.get("message") or info.get("error") or ""),
        "containers": containers,
        "log_tail": str(info.get("log_tail") or ""),
        "events": [
            {
                "type": str(one.get("type") or ""),
                "reason": str(one.get("reason") or ""),
                "message": str(one.get("message") or ""),
                "count": one.get("count") or 1,
                "last_time": one.get("last_time"),
            }
            for one in _mappings(info.get("events"))
        ],
    }


def show_usage(
    row: UsageRow, now: datetime, max_workers: int | None = None, *, sees_private: bool = False
) -> Shown:
    """Demand and supply of one key, and the cap of its owner."""
    open_ = sees_private or not row.private
    return {
        **_entity(row.entity),
        "labels": list(row.labels),
        "private": row.private and row.repo is not None,
        "repo": row.repo if open_ else None,
        "pools": list(row.pools),
        "demand": row.demand,
        "supply": row.supply,
        "deficit": row.deficit,
        "jobs_pending": row.jobs_pending,
        "jobs_running": row.jobs_running,
        "workers_pending": row.workers_pending,
        "workers_running": row.workers_running,
        "max_workers": max_workers,
        "oldest_at": row.oldest_at,
        "oldest_wait_seconds": _seconds(now - row.oldest_at) if row.oldest_at else None,
    }


def show_board(
    row: BoardRow,
    pools: Iterable[str],
    holds: Iterable[HoldRow],
    now: datetime,
    *,
    sees_private: bool = False,
) -> Shown:
    """A board, the pools it serves and what is on it."""
    open_ = sees_private or not row.private
    hold = longest(one for one in holds if one.scope == "board" and one.target == row.node)
    return {
        "node": row.node,
        "board": row.board,
        "pools": list(pools),
        "state": row.state,
        "slots": row.slots,
        "slots_free": row.free,
        "worker": row.worker,
        "worker_status": row.worker_status.value if row.worker_status else None,
        "entity_name": row.entity_name,
        "job_id": row.job_id,
        "job_name": row.job_name if open_ else None,
        "repo": row.repo if open_ else None,
        "private": row.private,
        "hidden": not open_,
        "job_started_at": row.job_started_at,
        "job_seconds": _seconds(now - row.job_started_at) if row.job_started_at else None,
        "heartbeat_at": row.heartbeat_at,
        "updated_at": row.updated_at,
        "silent": now - row.heartbeat_at > SILENT_AFTER,
        "hold": show_hold(hold, sees_private=sees_private) if hold else None,
    }


def longest(holds: Iterable[HoldRow]) -> HoldRow | None:
    """The hold that ends last; without an end is the longest."""
    return max(holds, key=lambda hold: hold.until or FOR_EVER, default=None)


def whys(holds: Iterable[HoldRow], scope: str) -> dict[str, set[str]]:
    """By target, all that holds it: what can be done about it does not depend on what lasts longest."""
    found: dict[str, set[str]] = {}
    for hold in holds:
        if hold.scope == scope:
            found.setdefault(hold.target, set()).add(hold.why)
    return found


def show_hold(hold: HoldRow, *, sees_private: bool = False) -> Shown:
    """A hold; who set it is told to those who are signed in."""
    return {
        "scope": hold.scope,
        "target": hold.target,
        "why": hold.why,
        "until": hold.until,
        "note": hold.note,
        "who": hold.who if sees_private else None,
    }


def show_event(event: EventRow, *, hidden: bool, sees_private: bool = False) -> Shown:
    """An event; of private repositories without what it says, and who did it for those who are signed in."""
    return {
        "at": event.at,
        "source": event.source,
        "kind": event.kind,
        "outcome": event.outcome,
        "job_id": event.job_id,
        "worker": event.worker,
        "who": event.who if sees_private else None,
        "detail": {} if hidden else event.detail,
    }


def _entity(entity: Entity) -> Shown:
    return {"entity_id": entity.id, "entity_name": entity.name, "entity_type": entity.type.value}


def _explained(name: str, table: Mapping[str, Any]) -> Shown:
    """The sentence and next step of a reason; one that a newer program stored is shown by its name."""
    known = table.get(name)
    return {
        "reason": name,
        "sentence": known.sentence if known else f"{name.replace('_', ' ').capitalize()}.",
        "next_step": known.next_step if known else "",
    }


def _safe_url(url: str) -> str | None:
    return url if url.startswith(("https://", "http://")) else None


def _seconds(value: timedelta) -> int:
    return max(0, round(value.total_seconds()))


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
