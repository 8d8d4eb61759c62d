"""Between rows and the values of the domain."""

import json
from functools import lru_cache
from typing import Any

from controller.domain.jobs import Entity, EntityType, Job, JobStatus, Mark
from controller.domain.workers import Worker, WorkerStatus

JOB_COLUMNS = """
    job_id, name, html_url, entity_id, entity_name, entity_type, repo, private, app_id, installation_id, labels,
    pool, run_id, run_attempt, status, conclusion, runner_name, learnt_from, confirmed, allowed, attempts,
    retry_after, last_failure, mark, heard_at, poll_at, polls, missing_since, skip_reason, skip_since, skip_detail,
    failure_info, created_at, seen_at, started_at, completed_at
"""

WORKER_COLUMNS = """
    w.name, w.entity_id, w.entity_name, w.entity_type, w.repo, w.app_id, w.installation_id, w.labels, w.pool,
    w.image, w.made_for, w.warm_for, w.node, w.group_id, w.runner_id, w.runner_version, w.status, w.ending_reason,
    w.ending_since, w.online_at, w.idle_since, w.not_busy_since, w.busy_since, w.read_at, w.heartbeat_at, w.create_rv,
    w.failure_reason, w.failure_info, w.created_at, w.jit_at, w.pod_at, w.running_at, w.pod_ended_at, w.completed_at,
    b.job_id AS bound_job, b.status AS bound_status, b.completed_at AS bound_ended_at,
    b.started_at AS bound_started_at
"""

# Of the same owner only: whoever runs a runner of their own may give it the name of another owner's.
BINDING = """
    LEFT JOIN LATERAL (
        SELECT j.job_id, j.status, j.started_at, j.completed_at FROM jobs j
        WHERE j.runner_name = w.name AND j.entity_id = w.entity_id ORDER BY j.started_at DESC NULLS LAST LIMIT 1
    ) b ON true
"""


@lru_cache(maxsize=4096)
def _entity(entity_id: int, name: str, kind: str) -> Entity:
    return Entity(entity_id, name, EntityType(kind))


def entity_of(row: dict[str, Any]) -> Entity:
    """The owner in a row of jobs or workers."""
    return _entity(row["entity_id"], row["entity_name"], row["entity_type"])


def job_of(row: dict[str, Any]) -> Job:
    """A row selected with JOB_COLUMNS."""
    values = {
        name: value
        for name, value in row.items()
        if name not in ("entity_id", "entity_name", "entity_type", "labels", "status", "mark")
    }
    return Job(
        entity=entity_of(row),
        labels=tuple(row["labels"]),
        status=JobStatus(row["status"]),
        mark=Mark(row["mark"]) if row["mark"] else None,
        **values,
    )


# What demand_match needs of a pending job. It reads all of them in every iteration, so it reads no more than that.
WAITING_COLUMNS = """
    job_id, entity_id, entity_name, entity_type, repo, labels, status, created_at, app_id, installation_id, run_id,
    seen_at, html_url, pool, confirmed, attempts, retry_after, last_failure, mark, skip_reason,
    skip_detail::text AS skip_text
"""
WAITING_PARTS = frozenset(
    {"entity_id", "entity_name", "entity_type", "labels", "status", "mark", "skip_text"}
)


def waiting_of(row: dict[str, Any]) -> Job:
    """A row selected with WAITING_COLUMNS."""
    return Job(
        entity=entity_of(row),
        labels=tuple(row["labels"]),
        status=JobStatus.PENDING,
        mark=Mark(row["mark"]) if row["mark"] else None,
        skip_detail=_detail(row["skip_text"]),
        **{name: row[name] for name in row.keys() - WAITING_PARTS},
    )


@lru_cache(maxsize=4096)
def _detail(text: str) -> dict[str, Any]:
    """Jobs that wait for the same thing share one value; nobody changes it."""
    return json.loads(text)  # type: ignore[no-any-return]


def worker_of(row: dict[str, Any]) -> Worker:
    """A row selected with WORKER_COLUMNS and BINDING."""
    skipped = ("entity_id", "entity_name", "entity_type", "labels", "status")
    values = {
        name: value for name, value in row.items() if name not in skipped and not name.startswith("bound_")
    }
    return Worker(
        entity=entity_of(row),
        labels=tuple(row["labels"]),
        status=WorkerStatus(row["status"]),
        job_id=row["bound_job"],
        job_status=JobStatus(row["bound_status"]) if row["bound_status"] else None,
        job_started_at=row["bound_started_at"],
        job_ended_at=row["bound_ended_at"],
        **values,
    )
