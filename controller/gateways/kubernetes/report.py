"""What is worth keeping of a failed pod, read from raw JSON and log bytes. Pure; `gateway.report` fetches."""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.domain.sightings import PodReport
from controller.errors import clip
from controller.gateways.kubernetes.parse import EPOCH, Raw, parse_time

LOG_LINES = 200
LOG_BYTES = 32 * 1024
EVENT_COUNT = 20


def make_report(pod: Raw, log: bytes | None, events: Sequence[Raw] | None) -> PodReport:
    """Put together what was fetched; None is a part that was not answered for."""
    fetched = {"log_tail": log, "events": events}
    status = pod.get("status") or {}
    return PodReport(
        reason=_text(status.get("reason")) or None,
        message=_text(status.get("message")) or None,
        containers=read_containers(status),
        log_tail=log_tail(log or b""),
        events=newest_events(events or ()),
        missing=tuple(part for part, found in fetched.items() if found is None),
    )


def read_containers(status: Raw) -> tuple[Mapping[str, Any], ...]:
    """How each container ended, or what it is doing."""
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return tuple(_container(one) for one in statuses)


def log_tail(log: bytes) -> str:
    """The last 200 lines and 32 KiB, beginning with a whole line where there is one."""
    kept = log[-LOG_BYTES:]
    if len(log) > LOG_BYTES and b"\n" in kept[:-1]:
        kept = kept[kept.index(b"\n") + 1 :]
    lines = kept.decode("utf-8", errors="ignore").replace("\x00", "").splitlines(keepends=True)
    return "".join(lines[-LOG_LINES:])


def newest_events(events: Sequence[Raw]) -> tuple[Mapping[str, Any], ...]:
    """The last 20 events in the order in which they happened; the API server sorts them by name."""
    ordered = sorted(events, key=lambda event: parse_time(_last_time(event)) or EPOCH)
    return tuple(_event(event) for event in ordered[-EVENT_COUNT:])


def _container(status: Raw) -> Mapping[str, Any]:
    state = status.get("state") or {}
    ended = state.get("terminated") or {}
    told = ended or state.get("waiting") or {}
    return {
        "name": _text(status.get("name")),
        "exit_code": ended.get("exitCode"),
        "reason": _text(told.get("reason")),
        "message": _text(told.get("message")),
        "restart_count": status.get("restartCount") or 0,
    }


def _event(event: Raw) -> Mapping[str, Any]:
    series = event.get("series") or {}
    return {
        "type": _text(event.get("type")),
        "reason": _text(event.get("reason")),
        "message": _text(event.get("message")),
        "count": series.get("count") or event.get("count") or 1,
        "last_time": _last_time(event),
    }


def _last_time(event: Raw) -> str | None:
    """Old and new recorders write the time into different fields."""
    series = event.get("series") or {}
    metadata = event.get("metadata") or {}
    return (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("firstTimestamp")
        or metadata.get("creationTimestamp")
    )


def _text(value: object) -> str:
    """A text as a database row can hold it."""
    return clip(str(value or "").replace("\x00", ""))
