"""The history of jobs for the pages: by status, then by time, without ever sorting the whole table.

Each status is a section of its own that an index delivers in order. A slice is put together from the sections it
touches; a section before it is only counted, and only when it lies before the slice altogether.
"""

from datetime import timedelta
from typing import Any

from controller.domain.jobs import Job, JobStatus
from controller.domain.pages import TEXT_REACH, JobFilter, Listing, Slice
from controller.gateways.postgres.database import Connection
from controller.gateways.postgres.rows import JOB_COLUMNS, job_of

LONGEST_JOB = timedelta(days=40)  # GitHub ends every job before that: older ones cannot have failed today
SECTIONS = (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.FAILED, JobStatus.COMPLETED)

# A filter that is NULL folds away while planning: these statements are never prepared, so the plan sees the values.
# What is not shown of a private repository cannot be looked for either: the answer would tell that it exists.
MATCHING = """
    status = %(status)s AND created_at >= %(start)s AND created_at < %(end)s
    AND (%(entities)s::bigint[] IS NULL OR entity_id = ANY(%(entities)s::bigint[]))
    AND (%(run_id)s::bigint IS NULL OR run_id = %(run_id)s::bigint AND (%(sees_private)s OR NOT private))
    AND (%(repo)s::text IS NULL OR lower(repo) = lower(%(repo)s::text) AND (%(sees_private)s OR NOT private))
    AND (%(label)s::text IS NULL OR labels @> ARRAY[%(label)s::text])
    AND (%(pool)s::text IS NULL OR pool = %(pool)s::text)
    AND (%(failed_since)s::timestamptz IS NULL OR completed_at >= %(failed_since)s::timestamptz)
"""
FOUND = """
    position(lower(%(text)s::text) IN lower(entity_name)) > 0
    OR (%(sees_private)s OR NOT private) AND position(lower(%(text)s::text) IN lower(repo || ' ' || name)) > 0
"""
SECTION = f"SELECT job_id, created_at FROM jobs WHERE {MATCHING}"
SECTION_WITH_TEXT = f"""
SELECT job_id, created_at FROM (
    SELECT job_id, created_at, entity_name, repo, name, private FROM jobs WHERE {MATCHING}
    ORDER BY created_at DESC, job_id DESC LIMIT {TEXT_REACH}
) AS newest WHERE {FOUND}
"""


# The inner query walks the index alone; only the rows that are shown are read from the table.
def oldest_first(section: str) -> str:
    """A slice of a section, the oldest first."""
    return f"""
SELECT {JOB_COLUMNS} FROM jobs JOIN (
    SELECT job_id FROM ({section}) AS found ORDER BY created_at, job_id OFFSET %(offset)s LIMIT %(limit)s
) AS slice USING (job_id) ORDER BY created_at, job_id
"""


def newest_first(section: str) -> str:
    """A slice of a section, the newest first."""
    return f"""
SELECT {JOB_COLUMNS} FROM jobs JOIN (
    SELECT job_id FROM ({section}) AS found ORDER BY created_at DESC, job_id DESC OFFSET %(offset)s LIMIT %(limit)s
) AS slice USING (job_id) ORDER BY created_at DESC, job_id DESC
"""


# Asked only of a section that ends before `offset`; the limit tells the planner how little that is.
def counted(section: str) -> str:
    """How many rows of a section come before `offset`."""
    return f"""
SELECT count(*) AS number FROM (
    SELECT job_id FROM ({section}) AS found ORDER BY created_at DESC, job_id DESC LIMIT %(offset)s
) AS section
"""


OLDEST_FIRST, OLDEST_WITH_TEXT = oldest_first(SECTION), oldest_first(SECTION_WITH_TEXT)
NEWEST_FIRST, NEWEST_WITH_TEXT = newest_first(SECTION), newest_first(SECTION_WITH_TEXT)
COUNT, COUNT_WITH_TEXT = counted(SECTION), counted(SECTION_WITH_TEXT)


async def read_history(connection: Connection, wanted: JobFilter, part: Slice) -> Listing[Job]:
    """One slice: pending oldest first, then running, failed and completed, each newest first."""
    entities = await entities_named(connection, wanted.entity)
    oldest, newest, count = OLDEST_FIRST, NEWEST_FIRST, COUNT
    if wanted.text is not None:
        oldest, newest, count = OLDEST_WITH_TEXT, NEWEST_WITH_TEXT, COUNT_WITH_TEXT
    jobs: list[Job] = []
    offset, limit = part.offset, part.per_page + 1
    for status in SECTIONS:
        if len(jobs) == limit:
            break
        if not concerns(wanted, status):
            continue
        values = section_values(wanted, status, entities, offset, limit - len(jobs))
        query = oldest if status is JobStatus.PENDING else newest
        rows = await (await connection.execute(query, values, prepare=False)).fetchall()
        jobs.extend(job_of(row) for row in rows)
        if rows:
            offset = 0
        elif offset and status is not SECTIONS[-1]:
            before = await (await connection.execute(count, values, prepare=False)).fetchone()
            offset -= before["number"] if before else 0
    return Listing.cut(jobs, part.per_page)


def concerns(wanted: JobFilter, status: JobStatus) -> bool:
    """Whether a section can hold anything that is wanted."""
    if wanted.failed_since and status is not JobStatus.FAILED:
        return False
    return not wanted.statuses or status in wanted.statuses


def section_values(
    wanted: JobFilter, status: JobStatus, entities: list[int] | None, offset: int, limit: int
) -> dict[str, Any]:
    """The parameters of the statements above."""
    start, failed_since = wanted.window.start, wanted.failed_since
    if wanted.lost_since and status is JobStatus.FAILED:
        start = max(start, wanted.lost_since)
    if failed_since:
        start = max(start, failed_since - LONGEST_JOB)
    return {
        "status": status.value,
        "start": start,
        "end": wanted.window.end,
        "entities": entities,
        "run_id": wanted.run_id,
        "repo": wanted.repo,
        "label": wanted.label,
        "pool": wanted.pool,
        "failed_since": failed_since,
        "text": wanted.text,
        "sees_private": wanted.sees_private,
        "offset": offset,
        "limit": limit,
    }


# Hops from one entity to the next along jobs_by_entity: as many steps as there are entities, whatever they ran.
ENTITIES_NAMED = """
WITH RECURSIVE known AS (
    (SELECT entity_id, entity_name FROM jobs ORDER BY entity_id, created_at DESC LIMIT 1)
    UNION ALL
    SELECT following.entity_id, following.entity_name
    FROM known CROSS JOIN LATERAL (
        SELECT entity_id, entity_name FROM jobs WHERE entity_id > known.entity_id
        ORDER BY entity_id, created_at DESC LIMIT 1
    ) AS following
)
SELECT entity_id FROM known WHERE lower(entity_name) = lower(%(name)s)
"""


async def entities_named(connection: Connection, name: str | None) -> list[int] | None:
    """The ids behind a login or an id in digits; None when nothing was asked, empty when nobody is called so."""
    if name is None:
        return None
    rows = await (await connection.execute(ENTITIES_NAMED, {"name": name}, prepare=False)).fetchall()
    found = {int(row["entity_id"]) for row in rows}
    if name.isascii() and name.isdigit() and int(name) < 2**63:
        found.add(int(name))
    return sorted(found)
