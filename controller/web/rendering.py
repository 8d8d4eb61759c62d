"""Answers: HTML from templates, JSON, and the headers that both carry. Everything in a template is escaped."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from controller import __version__
from controller.domain.durations import show_duration
from controller.domain.explain import ABOUT_TO_START, SKIPS, UNJUDGED
from controller.web.addresses import base_url
from controller.web.alarms import Alarm
from controller.web.query import link_header
from controller.web.reader import PageDeps
from controller.web.shown import REASONS, Shown
from controller.web.wording import HOLDS, in_figures, noted, plural

HERE = Path(__file__).parent
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
SHORT_LOG = 5, 400  # lines, characters
FRESH = {"Cache-Control": "no-cache"}
NAVIGATION = (
    ("/", "Overview"),
    ("/usage", "Usage"),
    ("/jobs", "Jobs"),
    ("/queue", "Queue"),
    ("/workers", "Workers"),
    ("/boards", "Boards"),
    ("/schedules", "Schedules"),
)


@dataclass(frozen=True, slots=True)
class View:
    """A page and its twin: what the template is given, and what the JSON says."""

    template: str
    title: str
    data: Any
    context: Mapping[str, Any] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


class Renderer:
    """Turns views into responses."""

    def __init__(self, deps: PageDeps) -> None:
        self._deps = deps

    def page(self, request: Request, view: View, alarm: Alarm | None = None) -> Response:
        """The view as HTML, below an alarm if there is one."""
        settings = self._deps.settings
        template = _templates().get_template(view.template)
        text = template.render(
            environment_name=settings.environment,
            contact=settings.web.contact,
            title=view.title,
            path=request.url.path,
            query=request.query_params,
            twin=_twin(request),
            links=view.links,
            base_url=base_url(request),
            now=self._deps.clock.now(),
            reader=self._deps.visitors.reader(request),
            csrf=self._deps.visitors.csrf(request),
            can_sign_in=self._deps.visitors.possible,
            alarm=alarm,
            **view.context,
        )
        return Response(
            text,
            view.status,
            {**SECURITY_HEADERS, **FRESH, **_linked(request, view)},
            media_type="text/html",
        )

    def twin(self, request: Request, view: View) -> Response:
        """The view as JSON."""
        return data_response(view.data, view.status, _linked(request, view))


def data_response(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer, indented for those who read it in a terminal."""
    text = json.dumps(data, default=_plain, ensure_ascii=False, indent=2) + "\n"
    everything = {**SECURITY_HEADERS, **FRESH, **(headers or {})}
    return Response(text, status, everything, media_type="application/json")


class Assets(StaticFiles):
    """Our style sheet and script, with the same headers as the pages."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file that may be kept for a day: its address changes with its content."""
        response = await super().get_response(path, scope)
        response.headers.update({**SECURITY_HEADERS, "Cache-Control": "public, max-age=86400"})
        return response


@cache
def _templates() -> Environment:
    """The templates with what they all may use: compiled once, however many serve them."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "span": _span,
        "stamp": stamp,
        "utc": _utc,
        "moment": _moment,
        "words": _words,
        "ticks": _ticks,
        "value": _value,
        "figures": lambda reason: in_figures(reason["reason"], reason["detail"]),
        "plural": plural,
        "noted": noted,
        "seconds": lambda took: round(took.total_seconds()),
        "explained": _explained,
        "short": _short,
        "took": _took,
    }
    templates.globals |= {
        "assets": _fingerprints(),
        "navigation": NAVIGATION,
        "version": __version__,
        "hold_words": HOLDS,
        "about_to_start": ABOUT_TO_START,
        "unjudged": UNJUDGED,
    }
    return templates


def stamp(at: datetime) -> str:
    """A time as JSON and `<time datetime>` have it."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _moment(value: object) -> datetime | None:
    """A time that was stored as text within JSON, if it is one."""
    if not isinstance(value, str) or len(value) < len("2026-03-01T12:00"):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo else None


def _span(seconds: int) -> str:
    return show_duration(timedelta(seconds=seconds))


def _took(value: timedelta) -> str:
    return f"+{show_duration(value)}" if value >= timedelta(seconds=1) else "at once"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _ticks(text: str) -> Markup:
    """A sentence of ours: what stands between backticks is code, or a page of ours to go to."""
    linked = re.sub(r"`(/[a-z]+)`", r'<a href="\1">\1</a>', str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", linked))  # noqa: S704 - escaped first


def _explained(reason: str | None) -> str:
    """The sentence of a reason, for a hover text; empty if it has none."""
    known = SKIPS.get(reason or "") or REASONS.get(reason or "")
    return known.sentence if known else ""


def _short(log: str) -> bool:
    """Whether a log is so short that it stands open in a list."""
    return len(log) <= SHORT_LOG[1] and len(log.splitlines()) <= SHORT_LOG[0]


def _value(value: object) -> str:
    """A value from JSON columns as a short text."""
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return stamp(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _linked(request: Request, view: View) -> dict[str, str]:
    return {"Link": link_header(view.links, base_url(request))} if view.links else {}


def _twin(request: Request) -> str:
    path = "/overview" if request.url.path == "/" else request.url.path
    return f"{path}.json" + (f"?{request.url.query}" if request.url.query else "")


def _fingerprints() -> Shown:
    """The address of each asset, with a mark that changes with its content."""
    return {
        file.name: f"/static/{file.name}?v={hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
        for file in (HERE / "static").iterdir()
    }
