"""What the pages read. Nothing here writes: every transaction is read-only, of one snapshot and cut off after 5 s.

It is given a small `Database` of its own, so that no number of open pages can starve the loop or the receiver.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from controller.domain.charts import BoardDay, Charts, Span
from controller.domain.explain import UNJUDGED_AFTER
from controller.domain.jobs import Entity, EntityType, Job
from controller.domain.pages import (
    BoardRow,
    BoardTally,
    EventRow,
    HoldRow,
    JobFilter,
    JobStory,
    Leader,
    Listing,
    Overview,
    QueueCounts,
    Slice,
    Turn,
    UsageRow,
    WaitingGroup,
    Window,
    WorkerFilter,
    WorkerRow,
    WorkerStory,
)
from controller.domain.reasons import HARMLESS
from controller.domain.workers import WorkerStatus
from controller.gateways.postgres.database import Connection, Database
from controller.gateways.postgres.job_history import LONGEST_JOB, read_history
from controller.gateways.postgres.leader import Leadership, lock_key
from controller.gateways.postgres.page_charts import read_board_days, read_charts
from controller.gateways.postgres.page_turns import read_turn
from controller.gateways.postgres.reading import reading
from controller.gateways.postgres.rows import BINDING, JOB_COLUMNS, WORKER_COLUMNS, job_of, worker_of

EVENTS_SHOWN = 200
WORKERS_OF_JOB_SHOWN = 20
OVERVIEW_ROWS = 8
LATELY = timedelta(minutes=30)
NO_FAULT = [reason.value for reason in HARMLESS]

# A list shows the end of a failed worker's log; its own page shows all that was kept.
LISTED_COLUMNS = WORKER_COLUMNS.replace(
    "w.failure_info",
    """CASE WHEN w.failure_info ? 'log_tail' THEN jsonb_set(w.failure_info, '{log_tail}',
        to_jsonb(right(w.failure_info ->> 'log_tail', 2000))) ELSE w.failure_info END AS failure_info""",
)
# Nobody has said whether the repository of a personal worker is public until a job of it is known.
WORKER_JOINS = f"""
    {BINDING}
    LEFT JOIN jobs bound ON bound.job_id = b.job_id
    LEFT JOIN jobs meant ON meant.job_id = w.made_for
"""
PRIVATE = """
    COALESCE(bound.private, false) OR COALESCE(meant.private, bound.private, w.entity_type = 'User')
        AS bound_private
"""


class PageStore:
    """Reads for people: lists in slices, one job, one worker, the overview."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @staticmethod
    async def _rows(connection: Connection, query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        return await (await connection.execute(query, values, prepare=False)).fetchall()

    async def history(self, wanted: JobFilter, part: Slice) -> Listing[Job]:
        """Jobs by status, then by time."""
        async with reading(self._database) as connection:
            return await read_history(connection, wanted, part)

    USAGE = """
    WITH demand AS (
        SELECT entity_id, labels, CASE WHEN entity_type = 'User' THEN repo ELSE '' END AS repo,
            (array_agg(entity_name ORDER BY created_at DESC))[1] AS entity_name, max(entity_type) AS entity_type,
            bool_or(private) AS private, array_agg(DISTINCT pool) FILTER (WHERE pool IS NOT NULL) AS pools,
            count(*) FILTER (WHERE status = 'pending') AS pending,
            count(*) FILTER (WHERE status = 'running') AS running,
            min(created_at) FILTER (WHERE status = 'pending') AS oldest_at
        FROM jobs
        WHERE status IN ('pending', 'running') AND created_at >= %(start)s AND created_at < %(end)s
        GROUP BY 1, 2, 3
    ), supply AS (
        SELECT entity_id, labels, CASE WHEN entity_type = 'User' THEN repo ELSE '' END AS repo,
            (array_agg(entity_name ORDER BY created_at DESC))[1] AS entity_name, max(entity_type) AS entity_type,
            array_agg(DISTINCT pool) AS pools,
            count(*) FILTER (WHERE status = 'pending') AS pending,
            count(*) FILTER (WHERE status = 'running') AS running
        FROM workers
        WHERE status IN ('pending', 'running') AND created_at >= %(start)s AND created_at < %(end)s
        GROUP BY 1, 2, 3
    )
    SELECT entity_id, labels, repo, COALESCE(d.entity_name, s.entity_name) AS entity_name,
        COALESCE(d.entity_type, s.entity_type) AS entity_type, COALESCE(d.private, repo <> '') AS private,
        ARRAY(SELECT DISTINCT unnest(COALESCE(d.pools, '{}') || COALESCE(s.pools, '{}')) ORDER BY 1) AS pools,
        COALESCE(d.pending, 0) AS jobs_pending, COALESCE(d.running, 0) AS jobs_running,
        COALESCE(s.pending, 0) AS workers_pending, COALESCE(s.running, 0) AS workers_running, d.oldest_at
    FROM demand d FULL JOIN supply s USING (entity_id, labels, repo)
    ORDER BY COALESCE(d.pending, 0) + COALESCE(d.running, 0) - COALESCE(s.pending, 0) - COALESCE(s.running, 0)
        DESC, d.oldest_at NULLS LAST, entity_name, labels, repo
    OFFSET %(offset)s LIMIT %(limit)s
    """

    async def usage(self, window: Window, part: Slice) -> Listing[UsageRow]:
        """Demand and supply by key, the largest deficit first."""
        async with reading(self._database) as connection:
            rows = await self._rows(connection, self.USAGE, slice_values(window, part))
        return Listing.cut([usage_of(row) for row in rows], part.per_page)

    WORKERS = f"""
    SELECT {LISTED_COLUMNS}, {PRIVATE} FROM (
        SELECT name AS chosen FROM workers
        WHERE (%(statuses)s::text[] IS NULL OR status = ANY(%(statuses)s::text[]))
          AND (%(pool)s::text IS NULL OR pool = %(pool)s::text)
          AND (%(node)s::text IS NULL OR node = %(node)s::text)
          AND (%(failed_since)s::timestamptz IS NULL OR status = 'failed'
               AND completed_at >= %(failed_since)s::timestamptz
               AND COALESCE(failure_reason, '') <> ALL(%(harmless)s::text[]))
          AND created_at >= %(start)s AND created_at < %(end)s
        ORDER BY created_at DESC, name OFFSET %(offset)s LIMIT %(limit)s
    ) AS slice JOIN workers w ON w.name = chosen {WORKER_JOINS}
    ORDER BY w.created_at DESC, w.name
    """

    async def workers(self, wanted: WorkerFilter, part: Slice) -> Listing[WorkerRow]:
        """Workers, newest first; of their logs only the end."""
        values = slice_values(wanted.window, part)
        values |= {"statuses": [status.value for status in wanted.statuses] or None}
        values |= {"pool": wanted.pool, "node": wanted.node}
        values |= {"failed_since": wanted.failed_since, "harmless": NO_FAULT}
        async with reading(self._database) as connection:
            rows = await self._rows(connection, self.WORKERS, values)
        return Listing.cut([worker_row_of(row) for row in rows], part.per_page)

    BOARDS = """
    SELECT b.node, b.board, b.state, b.slots,
        COALESCE(b.free, CASE WHEN b.state = 'free' THEN b.slots ELSE 0 END) AS free,
        b.heartbeat_at, b.updated_at, b.worker, w.status AS worker_status, w.entity_name,
        j.job_id, j.name AS job_name, j.started_at AS job_started_at,
        j.repo, COALESCE(j.private, false) AS private
    FROM boards b LEFT JOIN workers w ON w.name = b.worker
    LEFT JOIN LATERAL (
        SELECT job_id, name, started_at, repo, private FROM jobs
        WHERE runner_name = b.worker AND entity_id = w.entity_id AND status = 'running'
        ORDER BY started_at DESC NULLS LAST LIMIT 1
    ) j ON true
    WHERE b.updated_at >= %(start)s AND b.updated_at < %(end)s
    ORDER BY b.board NULLS LAST, b.node OFFSET %(offset)s LIMIT %(limit)s
    """

    async def boards(self, window: Window, part: Slice) -> tuple[Listing[BoardRow], tuple[BoardTally, ...]]:
        """Boards by type and name with what runs on them, and the tallies of that moment.

        The window is that of their last change.
        """
        async with reading(self._database) as connection:
            rows = await self._rows(connection, self.BOARDS, slice_values(window, part))
            tallies = await self._tallies(connection, window)
        return Listing.cut([board_of(row) for row in rows], part.per_page), tallies

    HOLDS = """
    SELECT scope, target, why, until, note, who FROM holds WHERE until IS NULL OR until > %(now)s
    ORDER BY scope, target, why
    """

    async def holds(self, now: datetime) -> tuple[HoldRow, ...]:
        """What is held at the moment."""
        async with reading(self._database) as connection:
            return await self._holds(connection, now)

    async def _holds(self, connection: Connection, now: datetime) -> tuple[HoldRow, ...]:
        return tuple(HoldRow(**row) for row in await self._rows(connection, self.HOLDS, {"now": now}))

    JOB = f"SELECT {JOB_COLUMNS} FROM jobs WHERE job_id = %(job_id)s"
    JOB_EVENTS = """
    SELECT at, source, kind, outcome, job_id, worker, who, detail FROM events WHERE job_id = %(job_id)s
    ORDER BY at DESC, id DESC LIMIT %(limit)s
    """
    JOB_WORKERS = f"""
    SELECT {LISTED_COLUMNS}, {PRIVATE} FROM workers w {WORKER_JOINS}
    WHERE w.made_for = %(job_id)s OR w.name = %(runner_name)s
    ORDER BY w.created_at DESC, w.name LIMIT %(limit)s
    """

    async def job(self, job_id: int) -> JobStory | None:
        """All about one job; None if neither a row nor an event knows it."""
        async with reading(self._database) as connection:
            jobs = [job_of(row) for row in await self._rows(connection, self.JOB, {"job_id": job_id})]
            values: dict[str, Any] = {"job_id": job_id, "limit": EVENTS_SHOWN}
            events = tuple(EventRow(**row) for row in await self._rows(connection, self.JOB_EVENTS, values))
            if not jobs:
                return JobStory(None, events[::-1], ()) if events else None
            values |= {"runner_name": jobs[0].runner_name, "limit": WORKERS_OF_JOB_SHOWN}
            workers = await self._rows(connection, self.JOB_WORKERS, values)
        return JobStory(jobs[0], events[::-1], tuple(worker_row_of(row) for row in workers))

    WORKER = f"""
    SELECT {WORKER_COLUMNS}, {PRIVATE} FROM workers w {WORKER_JOINS} WHERE w.name = %(name)s
    """
    WORKER_EVENTS = """
    SELECT at, source, kind, outcome, job_id, worker, who, detail FROM events WHERE worker = %(name)s
    ORDER BY at DESC, id DESC LIMIT %(limit)s
    """

    async def worker(self, name: str) -> WorkerStory | None:
        """All about one worker."""
        async with reading(self._database) as connection:
            rows = await self._rows(connection, self.WORKER, {"name": name})
            if not rows:
                return None
            row = worker_row_of(rows[0])
            values = {"name": name, "limit": EVENTS_SHOWN}
            events = tuple(
                EventRow(**event) for event in await self._rows(connection, self.WORKER_EVENTS, values)
            )
            jobs = await self._rows(connection, self.JOB, {"job_id": row.worker.job_id})
        return WorkerStory(row, events[::-1], job_of(jobs[0]) if jobs else None)

    COUNTS = """
    SELECT j.pending AS jobs_pending, j.running AS jobs_running, j.oldest_at, w.pending AS workers_pending,
        w.running AS workers_running,
        f.today AS workers_failed_today, f.lately AS workers_failed_lately, f.before AS workers_failed_before,
        (SELECT count(*) FROM jobs WHERE status = 'failed' AND created_at >= %(horizon)s
            AND completed_at >= %(today)s) AS jobs_lost_today
    FROM (SELECT count(*) FILTER (WHERE status = 'pending') AS pending,
            count(*) FILTER (WHERE status = 'running') AS running,
            min(created_at) FILTER (WHERE status = 'pending' AND mark IS NULL) AS oldest_at
          FROM jobs WHERE status IN ('pending', 'running')) j,
         (SELECT count(*) FILTER (WHERE status = 'pending') AS pending,
            count(*) FILTER (WHERE status = 'running') AS running
          FROM workers WHERE status IN ('pending', 'running')) w,
         (SELECT count(*) FILTER (WHERE completed_at >= %(today)s) AS today,
            count(*) FILTER (WHERE completed_at >= %(lately)s) AS lately,
            count(*) FILTER (WHERE completed_at >= %(before)s AND completed_at < %(lately)s) AS before
          FROM workers WHERE status = 'failed' AND completed_at >= LEAST(%(today)s, %(before)s)
            AND COALESCE(failure_reason, '') <> ALL(%(harmless)s)) f
    """
    QUEUE = """
    SELECT pool, reason, reason IS NULL AND since < %(judged_since)s AS unjudged, count(*) AS jobs,
        min(created_at) FILTER (WHERE mark IS NULL) AS oldest_at
    FROM (SELECT pool, COALESCE(skip_reason, mark) AS reason, GREATEST(seen_at, skip_since) AS since, mark, created_at
          FROM jobs WHERE status = 'pending') AS waiting
    GROUP BY 1, 2, 3 ORDER BY jobs DESC, pool, reason, unjudged
    """
    # Whoever leads holds a lock for as long as it is there; the server lists it under unsigned numbers.
    LEADER = """
    SELECT holder, since, (SELECT max(at) FROM board_snapshots) AS worked_at, EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND granted AND classid = %(space)s::bigint::oid
          AND objid = %(key)s::bigint::oid AND objsubid = 2
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS present
    FROM leader WHERE id = 1 AND holder <> ''
    """
    WAITING = f"""
    SELECT {JOB_COLUMNS} FROM jobs WHERE status = 'pending' ORDER BY created_at, job_id LIMIT %(limit)s
    """
    FAILURES = f"""
    SELECT {LISTED_COLUMNS}, {PRIVATE} FROM (
        SELECT name AS chosen, completed_at AS ended FROM workers
        WHERE status = 'failed' AND completed_at >= %(today)s AND COALESCE(failure_reason, '') <> ALL(%(harmless)s)
        ORDER BY completed_at DESC LIMIT %(limit)s
    ) AS slice JOIN workers w ON w.name = chosen {WORKER_JOINS}
    ORDER BY ended DESC, w.name
    """

    async def overview(self, now: datetime, part: Slice) -> Overview:
        """Counts, boards, what waits longest and what failed last; today begins at midnight UTC."""
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        values: dict[str, Any] = {"today": today, "horizon": today - LONGEST_JOB, "limit": OVERVIEW_ROWS}
        values |= {"lately": now - LATELY, "before": now - 2 * LATELY, "harmless": NO_FAULT}
        async with reading(self._database) as connection:
            counts = await self._rows(connection, self.COUNTS, values)
            boards = await self._rows(connection, self.BOARDS, slice_values(Window(), part))
            tallies = await self._tallies(connection, Window())
            waiting = await self._rows(connection, self.WAITING, values)
            failures = await self._rows(connection, self.FAILURES, values)
            holds = await self._holds(connection, now)
            queue = await self._rows(connection, self.QUEUE, {"judged_since": now - UNJUDGED_AFTER})
            leader = await self._leader(connection)
        return Overview(
            QueueCounts(**counts[0]),
            Listing.cut([board_of(row) for row in boards], part.per_page),
            holds,
            tuple(job_of(row) for row in waiting),
            tuple(worker_row_of(row) for row in failures),
            tallies,
            tuple(WaitingGroup(**row) for row in queue),
            leader,
        )

    async def leader(self) -> Leader | None:
        """Who leads or led last; None if nobody ever did."""
        async with reading(self._database) as connection:
            return await self._leader(connection)

    async def _leader(self, connection: Connection) -> Leader | None:
        values = {"space": Leadership.SPACE, "key": lock_key(self._database.schema) % 2**32}
        found = await self._rows(connection, self.LEADER, values)
        return Leader(**found[0]) if found else None

    async def charts(self, span: Span, now: datetime) -> Charts:
        """What the charts of one span are drawn from."""
        async with reading(self._database) as connection:
            return await read_charts(connection, span, now)

    async def board_days(self, slots: dict[str, int], now: datetime) -> tuple[BoardDay, ...]:
        """The last 24 hours of these boards, given with their slots."""
        async with reading(self._database) as connection:
            return await read_board_days(connection, slots, now)

    TALLIES = """
    SELECT board, state, count(*) AS boards, sum(slots) AS slots,
        sum(COALESCE(free, CASE WHEN state = 'free' THEN slots ELSE 0 END)) AS free
    FROM boards WHERE updated_at >= %(start)s AND updated_at < %(end)s
    GROUP BY board, state ORDER BY board, state
    """

    async def board_tallies(self, window: Window) -> tuple[BoardTally, ...]:
        """How many boards there are of each type and state; the window is that of their last change."""
        async with reading(self._database) as connection:
            return await self._tallies(connection, window)

    async def _tallies(self, connection: Connection, window: Window) -> tuple[BoardTally, ...]:
        values = {"start": window.start, "end": window.end}
        return tuple(BoardTally(**row) for row in await self._rows(connection, self.TALLIES, values))

    async def turn(self, job: Job, board: str, pools: Sequence[str]) -> Turn:
        """What says when a waiting job's turn comes; `board` is its pool's type, and `pools` all that use it."""
        async with reading(self._database) as connection:
            return await read_turn(connection, job, board, pools)

    KNOWN = """
    SELECT EXISTS (SELECT FROM jobs WHERE job_id = %(number)s)
            OR EXISTS (SELECT FROM events WHERE job_id = %(number)s) AS as_job,
        EXISTS (SELECT FROM jobs WHERE run_id = %(number)s AND (%(sees_private)s OR NOT private)) AS as_run
    """

    async def knows(self, number: int, *, sees_private: bool) -> tuple[bool, bool]:
        """Whether a number is the id of a job, and whether it is that of a run; runs of private jobs are not told."""
        async with reading(self._database) as connection:
            row = (
                await self._rows(connection, self.KNOWN, {"number": number, "sees_private": sees_private})
            )[0]
        return row["as_job"], row["as_run"]


def slice_values(window: Window, part: Slice) -> dict[str, Any]:
    """The parameters that every list has; one row more than wanted tells whether others follow."""
    return {
        "start": window.start,
        "end": window.end,
        "offset": part.offset,
        "limit": part.per_page + 1,
    }


def usage_of(row: dict[str, Any]) -> UsageRow:
    """A row of USAGE."""
    entity = Entity(row.pop("entity_id"), row.pop("entity_name"), EntityType(row.pop("entity_type")))
    labels, pools, repo = tuple(row.pop("labels")), tuple(row.pop("pools")), row.pop("repo") or None
    return UsageRow(entity, labels, repo, pools=pools, **row)


def worker_row_of(row: dict[str, Any]) -> WorkerRow:
    """A row selected with WORKER_COLUMNS or LISTED_COLUMNS, and PRIVATE."""
    return WorkerRow(worker_of(row), row["bound_private"])


def board_of(row: dict[str, Any]) -> BoardRow:
    """A row of BOARDS."""
    status = row.pop("worker_status")
    return BoardRow(worker_status=WorkerStatus(status) if status else None, **row)
