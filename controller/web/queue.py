"""The queue: what runs, waits and failed, as page and as JSON; and why a single job is not running."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from starlette.requests import Request

from controller.domain.explain import explain
from controller.domain.jobs import JobStatus
from controller.domain.pages import EVER_SINCE, HoldRow
from controller.web.pages import NEVER_SEEN, NotThere
from controller.web.query import (
    JOBS,
    NOTHING,
    page_links,
    read_id,
    read_job_filter,
    read_slice,
    refuse_unknown,
)
from controller.web.reader import PageDeps
from controller.web.rendering import View
from controller.web.shown import Shown, longest, show_explained, show_hold, show_job, whys

LOST_SHOWN = timedelta(days=7)  # as long as failed occurrences; `start` asks for older ones
IN_THE_QUEUE = (JobStatus.PENDING, JobStatus.RUNNING, JobStatus.FAILED)

# More that stands in the queue, by name: the rows, shown by the template `queue_<name>.html`.
OtherRows = Callable[[Request], Awaitable[list[Shown]]]


class Queue:
    """Views of the queue."""

    def __init__(self, deps: PageDeps, others: Mapping[str, OtherRows]) -> None:
        self._deps = deps
        self._others = others

    async def page(self, request: Request) -> View:
        """Jobs, pools and owners, and whatever else is queued."""
        now = self._deps.clock.now()
        rows, links = await self._jobs(request, now)
        sees = self._deps.visitors.reader(request) is not None
        holds = await self._deps.store.holds(now)
        others = {name: await read(request) for name, read in self._others.items()}
        data: dict[str, Any] = {
            "jobs": rows,
            "holds": [show_hold(hold, sees_private=sees) for hold in holds],
            **others,
        }
        context = {
            **data,
            "sections": [(name, list(found)) for name, found in groupby(rows, lambda row: row["status"])],
            "pools": self._pools(holds, sees),
            "owners": _owners(rows, holds, sees),
            "others": sorted(others),
            "part": read_slice(request.query_params),
            "statuses": [status.value for status in IN_THE_QUEUE],
        }
        return View("queue.html", "Queue", data, context, links)

    async def jobs(self, request: Request) -> View:
        """`/api/queue`: the jobs alone."""
        rows, links = await self._jobs(request, self._deps.clock.now())
        return View("queue.html", "Queue", rows, links=links)

    async def _jobs(self, request: Request, now: datetime) -> tuple[list[Shown], dict[str, str]]:
        sees = self._deps.visitors.reader(request) is not None
        refuse_unknown(request.query_params, JOBS)
        part = read_slice(request.query_params)
        wanted = read_job_filter(request.query_params, now, sees_private=sees)
        if not wanted.statuses:
            wanted = replace(wanted, statuses=IN_THE_QUEUE)
        if wanted.window.start == EVER_SINCE:
            wanted = replace(wanted, lost_since=now - LOST_SHOWN)
        listing = await self._deps.store.history(wanted, part)
        links = page_links(request.url, part, more=listing.more)
        return [show_job(job, now, sees_private=sees) for job in listing.rows], links

    async def explain(self, request: Request) -> View:
        """`/api/jobs/{id}/explain`: the stored decision in words."""
        refuse_unknown(request.query_params, NOTHING)
        job_id = read_id(request.path_params["job_id"])
        story = await self._deps.store.job(job_id) if job_id else None
        if job_id is None or story is None:
            raise NotThere(NEVER_SEEN)
        full, now = self._deps.visitors.reader(request) is not None, self._deps.clock.now()
        return View("job.html", f"Job {job_id}", show_explained(explain(job_id, story, now, full=full)))

    def _pools(self, holds: tuple[HoldRow, ...], sees: bool) -> list[Shown]:
        held = whys(holds, "pool")
        return [
            {"name": name, "hold": _hold_on(holds, "pool", name, sees), "whys": held.get(name, ())}
            for name in (pool.name for pool in self._deps.settings.pools)
        ]


def _owners(rows: list[Shown], holds: tuple[HoldRow, ...], sees: bool) -> list[Shown]:
    """Who has jobs in the queue or is held."""
    names = {row["entity_name"].lower(): row["entity_name"] for row in rows}
    held = whys(holds, "entity")
    return [
        {"name": name, "hold": _hold_on(holds, "entity", key, sees), "whys": held.get(key, ())}
        for key, name in sorted({**{key: key for key in held}, **names}.items())
    ]


def _hold_on(holds: tuple[HoldRow, ...], scope: str, target: str, sees: bool) -> Shown | None:
    hold = longest(hold for hold in holds if hold.scope == scope and hold.target == target)
    return show_hold(hold, sees_private=sees) if hold else None
