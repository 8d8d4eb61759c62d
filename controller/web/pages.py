"""The pages, each as a view that is shown as HTML or as its JSON twin. They only read."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from starlette.requests import Request

from controller.decide.turns import estimate, position, queues
from controller.domain.charts import Span
from controller.domain.explain import belongs_to_private, explain
from controller.domain.jobs import Entity, Job, JobStatus
from controller.domain.pages import TEXT_REACH, BoardTally, Overview, Slice, Window
from controller.domain.workers import WorkerStatus
from controller.web.alarms import find_alarm
from controller.web.charts import Chart, ChartShelf, draw_charts, strip
from controller.web.fleet import (
    grouped,
    in_states,
    queue_by_pool,
    queue_by_reason,
    show_boards,
    without_boards,
)
from controller.web.query import (
    CHARTS,
    DAYS,
    JOBS,
    NOTHING,
    WORKERS,
    page_links,
    read_id,
    read_job_filter,
    read_slice,
    read_span,
    read_window,
    read_worker_filter,
    refuse_unknown,
)
from controller.web.reader import PageDeps
from controller.web.rendering import View
from controller.web.shown import (
    Shown,
    show_event,
    show_explained,
    show_hold,
    show_job,
    show_usage,
    show_worker,
    whys,
)
from controller.web.timelines import job_parts, job_stages, worker_stages

NEVER_SEEN = (
    "No job of this id was ever delivered here. Check the number, and whether the GitHub App is installed for "
    "the repository; what GitHub keeps back for an approval arrives later."
)
FAIR = "Owners take turns (scheduling: fair), so nobody can tell its place, nor when it starts."
OVERVIEW_BOARDS = 500
SUMMED = ("demand", "supply", "jobs_pending", "jobs_running")


class NotThere(Exception):
    """What was asked for does not exist; the message is a sentence for the reader."""


class Pages:
    """A view for every page."""

    def __init__(self, deps: PageDeps) -> None:
        self._deps = deps
        self._charts = ChartShelf(deps)

    async def overview(self, request: Request) -> View:
        """Boards, queue, failures of the day, what is held, who leads, and charts."""
        now, sees = self._deps.clock.now(), self._sees(request)
        refuse_unknown(request.query_params, CHARTS)
        span = read_span(request.query_params)
        seen = await self._deps.store.overview(now, Slice(1, OVERVIEW_BOARDS))
        charts = draw_charts(await self._charts.take(span), [pool.name for pool in self._deps.settings.pools])
        pools = self._deps.settings.pools
        boards = show_boards(seen.boards.rows, pools, seen.holds, now, sees_private=sees)
        data = {
            "controller": self._controller(seen, now),
            "counts": _counts(seen, now),
            "reasons": queue_by_reason(seen.queue),
            "boards": boards,
            "holds": [show_hold(hold, sees_private=sees) for hold in seen.holds],
            "waiting": [show_job(job, now, sees_private=sees) for job in seen.waiting],
            "failures": [show_worker(row, now, sees_private=sees) for row in seen.failures],
        }
        context = {
            **data,
            "groups": grouped(boards, seen.tallies, queue_by_pool(seen.queue, now)),
            "usable": in_states(seen.tallies, "free", "busy", "promised"),
            "busy": in_states(seen.tallies, "busy"),
            "failures_rise": seen.counts.failures_rise,
            "today": now.date().isoformat(),
            "more_boards": seen.boards.more,
            "pools": self._pools(),
            "missing": without_boards(pools, seen.tallies),
            "board_label": self._board_label(),
            "charts": charts,
            "span": span.value,
            "spans": [one.value for one in Span],
        }
        measured = {"span": span.value, "charts": [_chart_data(chart) for chart in charts]}
        return View("overview.html", "Overview", data | measured, context)

    async def usage(self, request: Request) -> View:
        """Demand and supply, grouped by (entity_id, labels)."""
        now, sees = self._deps.clock.now(), self._sees(request)
        refuse_unknown(request.query_params, DAYS)
        part = read_slice(request.query_params)
        listing = await self._deps.store.usage(read_window(request.query_params, now), part)
        rows = [show_usage(row, now, self._cap(row.entity), sees_private=sees) for row in listing.rows]
        tallies = await self._deps.store.board_tallies(Window())
        for row in rows:
            row |= self._boards_of(row["pools"], tallies)
        links = page_links(request.url, part, more=listing.more)
        sums = {name: sum(row[name] for row in rows) for name in SUMMED}
        sums["deficit"] = sum(
            max(0, row["deficit"]) for row in rows
        )  # spare workers serve their own key only
        context = {"rows": rows, "part": part, "sums": sums, "pools": self._pools()}
        return View("usage.html", "Usage", rows, context, links)

    async def history(self, request: Request) -> View:
        """Jobs: pending oldest first, then running, failed and completed."""
        now, sees = self._deps.clock.now(), self._sees(request)
        refuse_unknown(request.query_params, JOBS)
        part = read_slice(request.query_params)
        wanted = read_job_filter(request.query_params, now, sees_private=sees)
        listing = await self._deps.store.history(wanted, part)
        rows = [show_job(job, now, sees_private=sees) for job in listing.rows]
        links = page_links(request.url, part, more=listing.more)
        labels = sorted(
            {label for pool in self._pools() for labels in pool["label_sets"] for label in labels}
        )
        context = {
            "rows": rows,
            "part": part,
            "statuses": [status.value for status in JobStatus],
            "known_labels": labels,
            "pools": self._pools(),
            "text_reach": TEXT_REACH if wanted.text else None,
        }
        return View("history.html", "Jobs", rows, context, links)

    async def workers(self, request: Request) -> View:
        """Workers with their failure info, newest first."""
        now, sees = self._deps.clock.now(), self._sees(request)
        refuse_unknown(request.query_params, WORKERS)
        part, wanted = read_slice(request.query_params), read_worker_filter(request.query_params, now)
        listing = await self._deps.store.workers(wanted, part)
        rows = [show_worker(row, now, sees_private=sees) for row in listing.rows]
        links = page_links(request.url, part, more=listing.more)
        context = {
            "rows": rows,
            "part": part,
            "statuses": [status.value for status in WorkerStatus],
            "pools": self._pools(),
        }
        return View("workers.html", "Workers", rows, context, links)

    async def boards(self, request: Request) -> View:
        """Boards by type: what is on them, how busy they were for a day, how often their workers failed."""
        now, sees = self._deps.clock.now(), self._sees(request)
        refuse_unknown(request.query_params, DAYS)
        part, window = read_slice(request.query_params), read_window(request.query_params, now)
        listing, tallies = await self._deps.store.boards(window, part)
        pools = self._deps.settings.pools
        holds = await self._deps.store.holds(now)
        rows = show_boards(listing.rows, pools, holds, now, sees_private=sees)
        days = await self._charts.days({row.node: row.slots for row in listing.rows})
        paths = {}
        for row, day in zip(rows, days, strict=True):
            row["utilisation_24h"] = round(day.utilisation, 3)
            row["workers_ended_24h"], row["workers_failed_24h"] = day.ended, day.failed
            paths[day.node] = strip(day)
        context = {
            "groups": grouped(rows, tallies),
            "paths": paths,
            "whys": whys(holds, "board"),
            "buckets": Span.DAY.buckets,
            "part": part,
            "board_label": self._board_label(),
            "missing": without_boards(pools, tallies) if window == Window() else [],
        }
        links = page_links(request.url, part, more=listing.more)
        return View("boards.html", "Boards", rows, context, links)

    async def job(self, request: Request) -> View:
        """One job with its way, its turn and its events; ignored ones answer from events."""
        refuse_unknown(request.query_params, NOTHING)
        job_id = read_id(request.path_params["job_id"])
        story = await self._deps.store.job(job_id) if job_id else None
        if job_id is None or story is None:
            raise NotThere(NEVER_SEEN)
        now, sees = self._deps.clock.now(), self._sees(request)
        hidden = belongs_to_private(story) and not sees
        job = show_job(story.job, now, sees_private=sees) if story.job else None
        workers = [show_worker(row, now, sees_private=sees) for row in story.workers]
        data = {
            "job_id": job_id,
            "job": job,
            "queue": await self._turn(story.job) if story.job else None,
            "explanation": show_explained(explain(job_id, story, now, full=not hidden)),
            "workers": workers,
            "events": [show_event(event, hidden=hidden, sees_private=sees) for event in story.events],
        }
        context: dict[str, Any] = {**data, "stages": [], "parts": [], "pools": self._pools()}
        if job is not None:
            its = serving_worker(job, workers)
            context |= {"stages": job_stages(job, its), "parts": job_parts(job, its, now)}
        return View("job.html", f"Job {job_id}", data, context)

    async def _turn(self, job: Job) -> Shown | None:
        """The place in the queue for the boards, and with enough finished jobs an estimate.

        Where owners take turns nobody has a place: whoever comes later may be served earlier.
        """
        pool = self._deps.settings.catalogue.named(job.pool)
        if pool is None or not queues(job):
            return None
        sharing = [one.name for one in self._deps.settings.pools if one.board == pool.board]
        turn = await self._deps.store.turn(job, pool.board, sharing)
        fair = self._deps.settings.scheduling == "fair"
        entities = self._deps.settings.entities
        place = position(job, turn.queue, lambda entity: entities.limits(entity.name, entity.id).priority)
        wait = None if fair else estimate(place, turn.pace)
        board_time = turn.pace.board_time
        return {
            "position": None if fair else place,
            "note": FAIR if fair else None,
            "estimate_seconds": round(wait.total_seconds()) if wait is not None else None,
            "boards": turn.pace.slots,
            "finished_jobs": turn.pace.finished,
            "board_seconds": round(board_time.total_seconds()) if board_time is not None else None,
        }

    async def worker(self, request: Request) -> View:
        """One worker with its events and all that was kept of its failure."""
        refuse_unknown(request.query_params, NOTHING)
        name = request.path_params["name"]
        story = await self._deps.store.worker(name) if "\x00" not in name else None
        if story is None:
            raise NotThere("There never was a worker of this name here; the list shows all there were.")
        now, sees = self._deps.clock.now(), self._sees(request)
        worker = show_worker(story.row, now, sees_private=sees)
        data = {
            "worker": worker,
            "job": show_job(story.job, now, sees_private=sees) if story.job else None,
            "events": [
                show_event(event, hidden=worker["hidden"], sees_private=sees) for event in story.events
            ],
        }
        return View("worker.html", name, data, {**data, "stages": worker_stages(worker)})

    def _sees(self, request: Request) -> bool:
        """Whether this reader sees private repositories too."""
        return self._deps.visitors.reader(request) is not None

    def _controller(self, seen: Overview, now: datetime) -> Shown:
        loop = self._deps.status.snapshot()
        alarm = find_alarm(loop, seen.leader, now)
        leader = seen.leader if seen.leader and seen.leader.present else None
        return {
            "role": loop.role,
            "healthy": loop.healthy(now),
            "iterations": loop.iterations,
            "last_iteration_at": loop.last_iteration_at,
            "failing": loop.last_error is not None,
            "alarm": {"state": alarm.state, "sentence": alarm.sentence, "since": alarm.since}
            if alarm
            else None,
            "leader": leader.holder if leader else None,
            "leader_since": leader.since if leader else None,
        }

    def _cap(self, entity: Entity) -> int | None:
        return self._deps.settings.entities.limits(entity.name, entity.id).max_workers

    def _boards_of(self, pools: Iterable[str], tallies: Iterable[BoardTally]) -> Shown:
        """How many boards serve these pools, how many of them are free, and their slots."""
        types = {pool.board for pool in self._deps.settings.pools if pool.name in pools}
        found = [one for one in tallies if one.board in types]
        return {
            "boards": sum(one.boards for one in found),
            "boards_free": in_states(found, "free"),
            "slots": sum(one.slots for one in found),
            "slots_free": sum(one.free for one in found),
        }

    def _pools(self) -> list[Mapping[str, Any]]:
        return [
            {"name": pool.name, "board": pool.board, "label_sets": pool.label_sets}
            for pool in self._deps.settings.pools
        ]

    def _board_label(self) -> str:
        return self._deps.settings.kubernetes.board_label


def serving_worker(job: Shown, workers: list[Shown]) -> Shown | None:
    """The worker whose steps belong to the job's way: the one that GitHub gave it, else the live one made for it."""
    bound = next((one for one in workers if one["name"] == job["runner_name"]), None)
    if bound is not None or job["status"] != JobStatus.PENDING:
        return bound
    return next((one for one in workers if one["status"] in ("pending", "running")), None)


def _counts(seen: Overview, now: datetime) -> Shown:
    waited = now - seen.counts.oldest_at if seen.counts.oldest_at else None
    return {
        "jobs_pending": seen.counts.jobs_pending,
        "jobs_running": seen.counts.jobs_running,
        "workers_pending": seen.counts.workers_pending,
        "workers_running": seen.counts.workers_running,
        "workers_failed_today": seen.counts.workers_failed_today,
        "workers_failed_lately": seen.counts.workers_failed_lately,
        "jobs_lost_today": seen.counts.jobs_lost_today,
        "oldest_at": seen.counts.oldest_at,
        "oldest_wait_seconds": max(0, round(waited.total_seconds())) if waited else None,
    }


def _chart_data(chart: Chart) -> Shown:
    """A chart for programs: values per bucket; null where nothing was measured."""
    return {
        "name": chart.key,
        "title": chart.title,
        "start": chart.start,
        "step_seconds": chart.step_seconds,
        "series": [{"name": one.name, "values": one.values} for one in chart.series],
    }
