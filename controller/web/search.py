"""The search field: what a pasted text means."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote, urlsplit

from controller.web.query import read_id


@dataclass(frozen=True, slots=True)
class JobId:
    """The id of a job for certain."""

    number: int


@dataclass(frozen=True, slots=True)
class RunId:
    """The id of a run for certain."""

    number: int


@dataclass(frozen=True, slots=True)
class SomeId:
    """A bare number: a job's id or a run's."""

    number: int


@dataclass(frozen=True, slots=True)
class RunnerName:
    """The name of a runner."""

    name: str


@dataclass(frozen=True, slots=True)
class Owner:
    """A login, alone or before a repository's name."""

    login: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing that could be looked up."""


Sought = JobId | RunId | SomeId | RunnerName | Owner | Nothing

# The path of a job, of a check run (which has the job's id), and of a job in the REST API.
JOB_PATHS = (
    r"/actions/runs/[0-9]+(?:/attempts/[0-9]+)?/jobs?/([0-9]+)",
    r"/runs/([0-9]+)$",
    r"/actions/jobs/([0-9]+)",
)
RUN_PATH = r"/actions/runs/([0-9]+)"
LOGIN = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"


def read_search(text: str, stem: str) -> Sought:
    """Say what is looked for; `stem` is how this environment's runner names begin."""
    text = text.strip()
    if re.fullmatch(r"#?[0-9]+", text):
        known = read_id(text.lstrip("#"))
        return SomeId(known) if known else Nothing()
    if re.match(r"https?://", text, re.IGNORECASE):
        return _read_url(text)
    if re.fullmatch(rf"{re.escape(stem)}-[a-z0-9-]{{1,63}}", text):
        return RunnerName(text)
    if owner := re.fullmatch(rf"@?({LOGIN})(?:/[\w.-]{{1,100}})?", text):
        return Owner(owner[1])
    return Nothing()


def _read_url(text: str) -> Sought:
    try:
        parts = urlsplit(text)
    except ValueError:
        return Nothing()
    check = parse_qs(parts.query).get("check_run_id", [""])[0]
    if number := read_id(check):
        return JobId(number)
    path = unquote(parts.path).rstrip("/")
    for pattern in JOB_PATHS:
        if (found := re.search(pattern, path)) and not path.endswith(f"/actions/runs/{found[1]}"):
            number = read_id(found[1])
            return JobId(number) if number else Nothing()
    if found := re.search(RUN_PATH, path):
        number = read_id(found[1])
        return RunId(number) if number else Nothing()
    if owner := re.match(rf"/({LOGIN})(?:/|$)", path):
        return Owner(owner[1])
    return Nothing()


def job_path(number: int) -> str:
    """Where a job's page is."""
    return f"/jobs/{number}"


def run_path(number: int) -> str:
    """Where the jobs of a run are listed."""
    return f"/history?run={number}"


def worker_path(name: str) -> str:
    """Where a worker's page is."""
    return f"/workers/{quote(name, safe='')}"


def owner_path(login: str) -> str:
    """Where the jobs of an owner are listed."""
    return f"/history?entity={quote(login, safe='')}"
