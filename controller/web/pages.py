"""The pages, each as a view that is shown as HTML or as its JSON twin. They only read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

from starlette.requests import Request

from controller.domain.explain import Explained, explain
from controller.domain.jobs import JobStatus
from controller.domain.pages import BoardRow, HoldRow, JobStory, Slice
from controller.domain.workers import WorkerStatus
from controller.web.query import (
    ID_LIMIT,
    page_links,
    read_job_filter,
    read_slice,
    read_window,
    read_worker_filter,
)
from controller.web.reader import PageDeps
from controller.web.rendering import View
from controller.web.shown import (
    Shown,
    show_board,
    show_event,
    show_explained,
    show_hold,
    show_job,
    show_usage,
    show_worker,
)

OVERVIEW_BOARDS = 500


class NotThere(Exception):
    """What was asked for does not exist; the message is a sentence for the reader."""


class Pages:
    """A view for every page."""

    def __init__(self, deps: PageDeps) -> None:
        self._deps = deps

    async def overview(self, request: Request) -> View:
        """Boards, queue, failures of the day, and who leads."""
        now = self._deps.clock.now()
        seen = await self._deps.store.overview(now, Slice(1, OVERVIEW_BOARDS))
        loop = self._deps.status.snapshot()
        boards = self._boards(seen.boards.rows, seen.holds, now)
        waited = now - seen.counts.oldest_at if seen.counts.oldest_at else None
        counts = {
            "jobs_pending": seen.counts.jobs_pending,
            "jobs_running": seen.counts.jobs_running,
            "workers_pending": seen.counts.workers_pending,
            "workers_running": seen.counts.workers_running,
            "workers_failed_today": seen.counts.workers_failed_today,
            "jobs_lost_today": seen.counts.jobs_lost_today,
            "oldest_at": seen.counts.oldest_at,
            "oldest_wait_seconds": max(0, round(waited.total_seconds())) if waited else None,
        }
        shown = {
            "role": loop.role,
            "healthy": loop.healthy(now),
            "last_iteration_at": loop.last_iteration_at,
            "failing": loop.last_error is not None,
        }
        data = {
            "controller": shown,
            "counts": counts,
            "boards": boards,
            "holds": [show_hold(hold) for hold in seen.holds],
            "waiting": [show_job(job, now) for job in seen.waiting],
            "failures": [show_worker(row, now) for row in seen.failures],
        }
        return View(
            "overview.html",
            "Overview",
            data,
            {**data, "groups": grouped(boards), "more_boards": seen.boards.more, "pools": self._pools()},
        )

    async def usage(self, request: Request) -> View:
        """Demand and supply, grouped by (entity_id, labels)."""
        now = self._deps.clock.now()
        part = read_slice(request.query_params)
        listing = await self._deps.store.usage(read_window(request.query_params, now), part)
        rows = [show_usage(row, now) for row in listing.rows]
        links = page_links(request.url, part, more=listing.more)
        return View("usage.html", "Usage", rows, {"rows": rows, "part": part}, links)

    async def history(self, request: Request) -> View:
        """Jobs: pending oldest first, then running, failed and completed."""
        now = self._deps.clock.now()
        part, wanted = read_slice(request.query_params), read_job_filter(request.query_params, now)
        listing = await self._deps.store.history(wanted, part)
        rows = [show_job(job, now) for job in listing.rows]
        links = page_links(request.url, part, more=listing.more)
        context = {"rows": rows, "part": part, "statuses": [status.value for status in JobStatus]}
        return View("history.html", "Jobs", rows, context, links)

    async def workers(self, request: Request) -> View:
        """Workers with their failure info, newest first."""
        now = self._deps.clock.now()
        part, wanted = read_slice(request.query_params), read_worker_filter(request.query_params, now)
        listing = await self._deps.store.workers(wanted, part)
        rows = [show_worker(row, now) for row in listing.rows]
        links = page_links(request.url, part, more=listing.more)
        context = {"rows": rows, "part": part, "statuses": [status.value for status in WorkerStatus]}
        return View("workers.html", "Workers", rows, context, links)

    async def boards(self, request: Request) -> View:
        """Boards by type, with what is on them."""
        now = self._deps.clock.now()
        part = read_slice(request.query_params)
        listing = await self._deps.store.boards(read_window(request.query_params, now), part)
        rows = self._boards(listing.rows, await self._deps.store.holds(now), now)
        links = page_links(request.url, part, more=listing.more)
        context = {"groups": grouped(rows), "part": part, "board_label": self._board_label()}
        return View("boards.html", "Boards", rows, context, links)

    async def job(self, request: Request) -> View:
        """One job with its events; ignored ones answer from events."""
        text = request.path_params["job_id"]
        known = text.isascii() and text.isdigit() and int(text) <= ID_LIMIT
        story = await self._deps.store.job(int(text)) if known else None
        if story is None:
            raise NotThere(
                "No job of this id was ever delivered here. Check the number, and whether the GitHub App is "
                "installed for the repository; what GitHub keeps back for an approval arrives later."
            )
        now = self._deps.clock.now()
        private = hidden(story)
        found = explain(int(text), story, full=not private)
        job = show_job(story.job, now) if story.job else None
        data = {
            "job_id": int(text),
            "job": job,
            "explanation": show_explained(found),
            "ignored": ignored(found) if job is None else None,
            "workers": [show_worker(row, now) for row in story.workers],
            "events": [show_event(event, private=private) for event in story.events],
        }
        return View("job.html", f"Job {int(text)}", data, data)

    async def worker(self, request: Request) -> View:
        """One worker with its events and all that was kept of its failure."""
        name = request.path_params["name"]
        story = await self._deps.store.worker(name) if "\x00" not in name else None
        if story is None:
            raise NotThere("There never was a worker of this name here; the list shows all there were.")
        now = self._deps.clock.now()
        data = {
            "worker": show_worker(story.row, now),
            "job": show_job(story.job, now) if story.job else None,
            "events": [show_event(event, private=story.row.private) for event in story.events],
        }
        return View("worker.html", name, data, data)

    def _boards(self, rows: Iterable[BoardRow], holds: tuple[HoldRow, ...], now: datetime) -> list[Shown]:
        pools: dict[str, list[str]] = {}
        for pool in self._deps.settings.pools:
            pools.setdefault(pool.board, []).append(pool.name)
        return [show_board(row, pools.get(row.board or "", ()), holds, now) for row in rows]

    def _pools(self) -> list[Mapping[str, Any]]:
        return [{"name": pool.name, "label_sets": pool.label_sets} for pool in self._deps.settings.pools]

    def _board_label(self) -> str:
        return self._deps.settings.kubernetes.board_label


def grouped(boards: Iterable[Shown]) -> list[Shown]:
    """Boards of one type together, with how many are in which state."""
    groups = []
    for board, found in groupby(boards, key=lambda row: row["board"]):
        tiles = list(found)
        states = Counter(tile["state"] for tile in tiles)
        groups.append(
            {"board": board, "pools": tiles[0]["pools"], "tiles": tiles, "states": states.most_common()}
        )
    return groups


def hidden(story: JobStory) -> bool:
    """Whether a job's repository is private; without a row the deliveries say so, and silence means yes."""
    if story.job is not None:
        return story.job.private
    return any(event.detail.get("private") is not False for event in story.events)


def ignored(found: Explained) -> Shown:
    """Why a job that was delivered has no row."""
    return {"outcome": found.reason, "sentence": found.sentence, "next_step": found.next_step}
