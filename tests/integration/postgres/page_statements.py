"""Every statement of the pages, with values as people ask for them, over the database of `large`."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from controller.domain.charts import Span
from controller.domain.jobs import JobStatus
from controller.domain.pages import JobFilter, Slice, Window
from controller.gateways.postgres import job_history, page_charts, page_turns
from controller.gateways.postgres.job_history import section_values
from controller.gateways.postgres.pages import PageStore, slice_values
from controller.gateways.postgres.schedule_reads import ScheduleReads
from tests.integration.postgres.large import JOBS, LAST

Asked = tuple[str, str, dict[str, Any]]


def page_statements() -> Iterator[Asked]:
    """What is asked, the statement and its values."""
    yield from history_statements()
    yield from other_statements()
    yield from schedule_statements()


def history_statements() -> Iterator[Asked]:
    week = Window(LAST - timedelta(days=7))
    filters = {
        "all": (JobFilter(), None),
        "a week": (JobFilter(window=week), None),
        "an entity": (JobFilter(entity="7"), [7]),
        "an entity's week": (JobFilter(entity="7", window=week), [7]),
        "a run": (JobFilter(run_id=4711), None),
        "a repository": (JobFilter(repo="ORG/repo-7"), None),
        "a label": (JobFilter(label="rare"), None),
        "a common label": (JobFilter(label="ubuntu-24.04-riscv"), None),
        "a label of nobody": (JobFilter(label="none"), None),
        "a pool": (JobFilter(pool="p-7"), None),
        "a pool of nobody": (JobFilter(pool="none"), None),
        "lost today": (JobFilter(failed_since=LAST - timedelta(hours=9)), None),
    }
    for name, (wanted, entities) in filters.items():
        for status in filter(partial(job_history.concerns, wanted), JobStatus):
            for offset in (0, 99_900):
                values = section_values(wanted, status, entities, offset, 101)
                query = job_history.OLDEST_FIRST if status is JobStatus.PENDING else job_history.NEWEST_FIRST
                yield f"{name}, {status.value}, from {offset}", query, values
            yield f"count of {name}, {status.value}", job_history.COUNT, values
    for status in JobStatus:
        values = section_values(JobFilter(text="repo-77"), status, None, 0, 101)
        oldest = status is JobStatus.PENDING
        query = job_history.OLDEST_WITH_TEXT if oldest else job_history.NEWEST_WITH_TEXT
        yield f"text, {status.value}", query, values
        yield f"count of text, {status.value}", job_history.COUNT_WITH_TEXT, {**values, "offset": 900}
    yield "entities", job_history.ENTITIES_NAMED, {"name": "org-7"}


def other_statements() -> Iterator[Asked]:
    part = slice_values(Window(), Slice())
    today = {"today": LAST - timedelta(hours=12), "horizon": LAST - timedelta(days=40), "limit": 8}
    today |= {"harmless": ["runner_idle"]}
    today |= {"lately": LAST - timedelta(minutes=30), "before": LAST - timedelta(hours=1)}
    job = {"job_id": JOBS - 7, "runner_name": f"w-{JOBS - 7}", "limit": 20}
    yield "usage", PageStore.USAGE, part
    every = {"statuses": None, "pool": None, "node": None, "failed_since": None, "harmless": ["runner_idle"]}
    yield "workers", PageStore.WORKERS, {**part, **every}
    yield "failed workers", PageStore.WORKERS, {**part, **every, "statuses": ["failed"]}
    yield "workers of a pool", PageStore.WORKERS, {**part, **every, "pool": "p-7"}
    yield "workers of a board", PageStore.WORKERS, {**part, **every, "node": "node-7"}
    failed = {**part, **every, "statuses": ["failed"]}
    yield "failed workers of a board", PageStore.WORKERS, {**failed, "node": "node-7"}
    yield "failed workers of no board", PageStore.WORKERS, {**failed, "node": "none"}
    yield (
        "workers that failed today",
        PageStore.WORKERS,
        {**part, **every, "failed_since": LAST - timedelta(hours=9)},
    )
    yield "events of a job", PageStore.JOB_EVENTS, {"job_id": JOBS - 7, "limit": 200}
    yield "events of a worker", PageStore.WORKER_EVENTS, {"name": f"w-{JOBS - 7}", "limit": 200}
    yield "last page of workers", PageStore.WORKERS, {**part, **every, "offset": 99_900}
    turn = {"created_at": LAST, "job_id": JOBS + 70, "pools": ["p-7", "p-8"], "board": "b-7", "limit": 100}
    yield "queue of a board type", page_turns.QUEUE, turn
    yield "slots of a board type", page_turns.SLOTS, turn
    yield "pace of a board type", page_turns.PACE, turn
    yield "queue by reason", PageStore.QUEUE, {"judged_since": LAST}
    for span in Span:
        values = {"start": span.start(LAST), "now": LAST, "seconds": int(span.bucket.total_seconds())}
        values |= {"harmless": ["runner_idle"]}
        yield f"pools of {span.value}", page_charts.POOLS, values
        yield f"waits of {span.value}", page_charts.WAITS, values
        yield f"failures of {span.value}", page_charts.FAILURES, values
    day = {
        "start": Span.DAY.start(LAST),
        "now": LAST,
        "seconds": 900,
        "width": Span.DAY.bucket,
        "buckets": 96,
    }
    day |= {"nodes": [f"node-{n}" for n in range(100)], "harmless": ["runner_idle"]}
    yield "days of boards", page_charts.TAKEN, day
    yield "endings on boards", page_charts.ENDED, day
    yield "boards", PageStore.BOARDS, part
    yield "tallies of boards", PageStore.TALLIES, part
    yield "holds", PageStore.HOLDS, {"now": LAST}
    yield "leader", PageStore.LEADER, {"space": 1, "key": 1}
    yield "counts", PageStore.COUNTS, today
    yield "waiting", PageStore.WAITING, today
    yield "failures", PageStore.FAILURES, today
    yield "job", PageStore.JOB, job
    yield "workers of a job", PageStore.JOB_WORKERS, job
    yield "worker", PageStore.WORKER, {"name": f"w-{JOBS - 7}"}
    yield "known", PageStore.KNOWN, {"number": JOBS - 7, "sees_private": False}


def schedule_statements() -> Iterator[Asked]:
    whole = {**slice_values(Window(), Slice()), "ahead": timedelta(days=1)}
    week = {**whole, "start": LAST - timedelta(days=7)}
    yield "schedules", ScheduleReads.ALL, {}
    yield "newest occurrence of each schedule", ScheduleReads.LAST, {"names": [f"s-{n}" for n in range(20)]}
    yield "occurrences", ScheduleReads.NEWEST, whole
    yield "a week's occurrences", ScheduleReads.NEWEST, week
    yield "last page of occurrences", ScheduleReads.NEWEST, {**whole, "offset": 99_900}
    yield "waiting occurrences", ScheduleReads.WAITING, {"since": LAST - timedelta(days=7), "limit": 50}
