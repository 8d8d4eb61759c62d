"""From the query string to filters and slices, and back to links. A bad value is refused with a sentence."""

import re
from collections.abc import Mapping, Set
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import TypeVar

from starlette.datastructures import URL, QueryParams

from controller.domain.charts import Span
from controller.domain.jobs import JobStatus
from controller.domain.pages import JobFilter, Slice, Window, WorkerFilter
from controller.domain.workers import WorkerStatus
from controller.errors import clip
from controller.web.addresses import relative

PER_PAGE_LIMIT = 100
REACH_LIMIT = 100_000  # page × per_page
ID_LIMIT = 2**63 - 1
ENTITY_LIMIT = 100
TEXT_LIMIT = 200
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(9998, 12, 31)
CALENDAR_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
DAYS_BACK = "-([0-9]{1,4}|[01][0-9]{4}|20000)d"  # of a length that stays within the days above

DAYS = frozenset({"page", "per_page", "start", "end"})
JOBS = DAYS | {"status", "entity", "repo", "label", "text", "run", "pool", "failed_since"}
WORKERS = DAYS | {"status", "pool", "node", "failed_since"}
CHARTS = frozenset({"span"})
SEARCH = frozenset({"q"})
LOGIN = frozenset({"next"})
NOTHING: frozenset[str] = frozenset()

Status = TypeVar("Status", bound=StrEnum)


class BadQuery(ValueError):
    """A value that cannot be used; the message is a sentence for the reader."""


def refuse_unknown(query: QueryParams, known: Set[str]) -> None:
    """Refuse what is not asked for here, or twice: a filter would silently be left out."""
    for name in query:
        if len(query.getlist(name)) > 1 and name in known:
            several = " Several are separated by commas." if name == "status" else ""
            raise BadQuery(f"{name} is given more than once; give it once.{several}")
        if name not in known:
            verb = "is" if len(known) == 1 else "are"
            offer = f"there {verb} {', '.join(sorted(known))}" if known else "none is taken"
            raise BadQuery(f"There is no parameter {clip(name, 40)!r} here; {offer}.")


def read_id(text: str) -> int | None:
    """An id of GitHub's from a path or an address; None if it cannot be one."""
    known = re.fullmatch(r"[0-9]{1,19}", text) and 0 < int(text) <= ID_LIMIT
    return int(text) if known else None


def read_slice(query: Mapping[str, str]) -> Slice:
    """Read `page` and `per_page`."""
    page = _number(query, "page", 1, REACH_LIMIT)
    per_page = _number(query, "per_page", PER_PAGE_LIMIT, PER_PAGE_LIMIT)
    if page * per_page > REACH_LIMIT:
        raise BadQuery(f"page × per_page may be at most {REACH_LIMIT}; narrow the list with start and end.")
    return Slice(page, per_page)


def read_window(query: Mapping[str, str], now: datetime) -> Window:
    """Read `start` and `end`: whole days in UTC, the end included."""
    start, end = _day(query, "start", now), _day(query, "end", now)
    if start and end and start > end:
        raise BadQuery(f"start ({start}) is after end ({end}); exchange them.")
    window = Window()
    return Window(
        datetime.combine(start, time(), UTC) if start else window.start,
        datetime.combine(end + timedelta(days=1), time(), UTC) if end else window.end,
    )


def read_job_filter(query: Mapping[str, str], now: datetime, *, sees_private: bool = False) -> JobFilter:
    """Read what narrows the list of jobs."""
    run = query.get("run", "").strip()
    label = _text(query, "label", "one label", TEXT_LIMIT)
    return JobFilter(
        _statuses(query, JobStatus),
        _text(query, "entity", "a GitHub login or a numeric id", ENTITY_LIMIT),
        _number(query, "run", 0, ID_LIMIT) if run else None,
        read_window(query, now),
        repo=_text(query, "repo", "owner/name", TEXT_LIMIT),
        label=label.lower() if label else None,
        text=_text(query, "text", "some words", TEXT_LIMIT),
        pool=_text(query, "pool", "the name of a pool", TEXT_LIMIT),
        failed_since=_since(query, "failed_since", now),
        sees_private=sees_private,
    )


def read_worker_filter(query: Mapping[str, str], now: datetime) -> WorkerFilter:
    """Read what narrows the list of workers."""
    return WorkerFilter(
        _statuses(query, WorkerStatus),
        read_window(query, now),
        pool=_text(query, "pool", "the name of a pool", TEXT_LIMIT),
        node=_text(query, "node", "the name of a node", 2 * TEXT_LIMIT),
        failed_since=_since(query, "failed_since", now),
    )


def read_span(query: Mapping[str, str]) -> Span:
    """Read how far back charts go."""
    text = query.get("span", "").strip() or Span.DAY.value
    try:
        return Span(text)
    except ValueError:
        raise BadQuery(f"span must be one of {', '.join(span.value for span in Span)}.") from None


def _text(query: Mapping[str, str], name: str, expected: str, limit: int) -> str | None:
    text = query.get(name, "").strip()
    if len(text) > limit or "\x00" in text:
        raise BadQuery(f"{name} must be {expected}, of at most {limit} characters.")
    return text or None


def page_links(url: URL, part: Slice, *, more: bool) -> dict[str, str]:
    """The neighbours of a slice, by relation, as addresses within the site."""
    links = {}
    if part.page > 1:
        links["first"] = relative(url.include_query_params(page=1))
        links["prev"] = relative(url.include_query_params(page=part.page - 1))
    if more and (part.page + 1) * part.per_page <= REACH_LIMIT:
        links["next"] = relative(url.include_query_params(page=part.page + 1))
    return links


def link_header(links: Mapping[str, str], base: str) -> str:
    """The links as GitHub writes them: whole addresses."""
    return ", ".join(f'<{base}{url}>; rel="{relation}"' for relation, url in links.items())


def _number(query: Mapping[str, str], name: str, default: int, limit: int) -> int:
    text = query.get(name, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,19}", text) or not 1 <= int(text) <= limit:
        raise BadQuery(f"{name} must be a whole number from 1 to {limit}, not {clip(text, 40)!r}.")
    return int(text)


def _day(query: Mapping[str, str], name: str, now: datetime) -> date | None:
    text = query.get(name, "").strip()
    if not text:
        return None
    if back := re.fullmatch(DAYS_BACK, text):
        return now.astimezone(UTC).date() - timedelta(days=int(back[1]))
    if re.fullmatch(CALENDAR_DAY, text):
        try:
            day = date.fromisoformat(text)
        except ValueError:
            raise BadQuery(f"{name}: there is no day {text}.") from None
        if FIRST_DAY <= day <= LAST_DAY:
            return day
    raise BadQuery(f"{name} must be a day as YYYY-MM-DD (UTC) or as -7d, not {clip(text, 40)!r}.")


def _since(query: Mapping[str, str], name: str, now: datetime) -> datetime | None:
    day = _day(query, name, now)
    return datetime.combine(day, time(), UTC) if day else None


def _statuses(query: Mapping[str, str], kind: type[Status]) -> tuple[Status, ...]:
    words = [word.strip() for word in query.get("status", "").split(",") if word.strip()]
    try:
        return tuple(kind(word) for word in words)
    except ValueError:
        known = ", ".join(one.value for one in kind)
        raise BadQuery(f"status must be one or more of {known}, separated by commas.") from None
