"""Reading a delivery: from untrusted JSON to a notice, and what it means before the database is asked.

Used by the receiver and by the pull of missed deliveries alike. It may not trust anything about the payload.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from controller.domain.deliveries import (
    InstallationNotice,
    JobNotice,
    Notice,
    OtherNotice,
    Outcome,
    PingNotice,
)
from controller.domain.jobs import Entity, EntityType, LabelSet, normalise_labels
from controller.domain.pools import Catalogue

ID_LIMIT = 2**63 - 1
LABELS_LIMIT = 100
TEXT_LIMIT = 2_000
NAME_LIMIT = 255  # of names that are indexed; GitHub's own limits are lower
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
JOB_ACTIONS = {"queued", "in_progress", "completed", "waiting"}


class BadPayload(ValueError):
    """The payload is not what GitHub sends; the message names the field."""


def read_delivery(event: str, payload: object) -> Notice:
    """Turn a payload into a notice; BadPayload names the first field that is wrong."""
    if not isinstance(payload, Mapping):
        raise BadPayload("payload: expected an object")
    match event:
        case "ping":
            return PingNotice()
        case "workflow_job":
            return _job_notice(payload)
        case "installation" | "installation_repositories":
            installation = _object(payload, "installation")
            account = installation.get("account")
            login = account.get("login") if isinstance(account, Mapping) else None
            return InstallationNotice(
                event,
                _text(payload, "action"),
                _id(installation, "id", "installation.id"),
                _clean(login, "installation.account.login") if isinstance(login, str) else "",
            )
        case _:
            action = payload.get("action")
            return OtherNotice(
                _clean(event, "event")[:100],
                _clean(action, "action")[:100] if isinstance(action, str) else "",
            )


def preliminary_outcome(
    notice: Notice, catalogue: Catalogue, *, known_app: bool, allowed: bool
) -> Outcome | None:
    """The outcome of a delivery that needs no look at the jobs; None when it does."""
    match notice:
        case PingNotice():
            return Outcome.OK
        case OtherNotice():
            return Outcome.IGNORED_EVENT
        case _ if not known_app:
            return Outcome.IGNORED_NO_APP
        case InstallationNotice():
            return Outcome.OK
        case JobNotice(action=action) if action not in JOB_ACTIONS:
            return Outcome.IGNORED_ACTION
        case JobNotice(action="queued") if catalogue.serving(notice.labels) is None:
            return Outcome.IGNORED_NO_LABEL
        case JobNotice(action="queued") if not allowed:
            return Outcome.NOT_ALLOWED
        case JobNotice():
            return None


def _job_notice(payload: Mapping[str, Any]) -> JobNotice:
    job = _object(payload, "workflow_job")
    repository = _object(payload, "repository")
    owner = _object(repository, "owner", "repository.owner")
    installation = _object(payload, "installation")
    attempt = job.get("run_attempt", 1)
    return JobNotice(
        action=_text(payload, "action"),
        job_id=_id(job, "id", "workflow_job.id"),
        run_id=_id(job, "run_id", "workflow_job.run_id"),
        run_attempt=attempt if _is_int(attempt) and 0 < attempt < 2**31 else 1,
        status=_text(job, "status", "workflow_job.status"),
        conclusion=_optional_text(job, "conclusion", "workflow_job.conclusion"),
        runner_name=_short(
            _optional_text(job, "runner_name", "workflow_job.runner_name"), "workflow_job.runner_name"
        ),
        labels=_labels(job),
        name=_optional_text(job, "name", "workflow_job.name") or "",
        html_url=_optional_text(job, "html_url", "workflow_job.html_url") or "",
        entity=Entity(
            _id(owner, "id", "repository.owner.id"),
            _name(owner, "login", "repository.owner.login"),
            _entity_type(payload, owner),
        ),
        repo=_name(repository, "full_name", "repository.full_name"),
        private=repository.get("private") is not False,
        installation_id=_id(installation, "id", "installation.id"),
        created_at=_time(job, "created_at") or _time(job, "started_at") or _no_time(),
        started_at=_time(job, "started_at"),
        completed_at=_time(job, "completed_at"),
        has_deployment=isinstance(payload.get("deployment"), Mapping),
    )


def _entity_type(payload: Mapping[str, Any], owner: Mapping[str, Any]) -> EntityType:
    kind = _optional_text(owner, "type", "repository.owner.type")
    if kind == "Organization" or isinstance(payload.get("organization"), Mapping):
        return EntityType.ORGANIZATION
    return EntityType.USER


def _no_time() -> datetime:
    raise BadPayload("workflow_job.created_at: expected a time")


def _labels(job: Mapping[str, Any]) -> LabelSet:
    labels = job.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise BadPayload("workflow_job.labels: expected a list of texts")
    if len(labels) > LABELS_LIMIT:
        raise BadPayload(f"workflow_job.labels: expected at most {LABELS_LIMIT}")
    return normalise_labels(_clean(label, "workflow_job.labels") for label in labels)


def _object(parent: Mapping[str, Any], key: str, place: str | None = None) -> Mapping[str, Any]:
    value = parent.get(key)
    if not isinstance(value, Mapping):
        raise BadPayload(f"{place or key}: expected an object")
    return value


def _text(parent: Mapping[str, Any], key: str, place: str | None = None) -> str:
    value = parent.get(key)
    if not isinstance(value, str) or not value:
        raise BadPayload(f"{place or key}: expected a text")
    return _clean(value, place or key)


def _name(parent: Mapping[str, Any], key: str, place: str) -> str:
    value = _text(parent, key, place)
    _short(value, place)
    return value


def _short(value: str | None, place: str) -> str | None:
    """A cut-off name would be another name, so a long one is refused."""
    if value is not None and len(value) > NAME_LIMIT:
        raise BadPayload(f"{place}: expected at most {NAME_LIMIT} characters")
    return value


def _optional_text(parent: Mapping[str, Any], key: str, place: str) -> str | None:
    value = parent.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadPayload(f"{place}: expected a text or null")
    return _clean(value, place)


def _clean(value: str, place: str) -> str:
    """PostgreSQL stores neither NUL nor lone surrogates."""
    if "\x00" in value:
        raise BadPayload(f"{place}: holds a null byte")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadPayload(f"{place}: is not valid Unicode") from None
    return value[:TEXT_LIMIT]


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _id(parent: Mapping[str, Any], key: str, place: str) -> int:
    value = parent.get(key)
    if not _is_int(value) or not 0 < value <= ID_LIMIT:  # type: ignore[operator]
        raise BadPayload(f"{place}: expected a positive 64-bit integer")
    return int(value)  # type: ignore[arg-type]


def _time(job: Mapping[str, Any], key: str) -> datetime | None:
    """A time in UTC; the zero time of some serialisers means that there is none."""
    value = job.get(key)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        if at < EARLIEST:
            return None
        at = at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        raise BadPayload(f"workflow_job.{key}: expected a time") from None
    if at >= LATEST:
        raise BadPayload(f"workflow_job.{key}: expected a time before {LATEST:%Y}")
    return at
