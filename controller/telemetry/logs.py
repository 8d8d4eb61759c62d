"""Logs: one JSON object per line on standard output, `noun.verb` with fields, every text redacted.

What libraries log through the standard library takes the same way, from WARNING on.
"""

import logging
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from controller.errors import clip
from controller.telemetry.redaction import redact

LogFormat = Literal["json", "console"]
TEXT_LIMIT = 8_000
DEPTH_LIMIT = 6


def setup_logs(format: LogFormat = "json", level: str = "info", stream: TextIO | None = None) -> None:
    """Send our log events and the libraries' warnings to one stream, standard output unless given."""
    stream = stream or sys.stdout
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.format_exc_info,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), timestamp_key="time", exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, redact_event, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, name_the_library],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact_event, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(threshold, logging.WARNING))
    for library in (
        "uvicorn",
        "uvicorn.error",
        "uvicorn.access",
        "httpx",
        "httpcore",
        "kubernetes",
        "psycopg",
    ):
        logger = logging.getLogger(library)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.NOTSET)
    logging.getLogger("uvicorn.access").disabled = True  # it would log every query string


def name_the_library(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Bring a library's record into our form: `library.logged`, its words as the message."""
    record: logging.LogRecord | None = event.get("_record")
    message = event.pop("event", "")
    event["event"] = "library.logged"
    event["library"] = record.name if record else ""
    event["message"] = message
    return event


def redact_event(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Take secrets out of every text in the event, however deep it sits."""
    return {key: _redacted(value, DEPTH_LIMIT) for key, value in event.items()}


def _redacted(value: Any, depth: int) -> Any:
    match value:
        case bool() | int() | float() | None:
            return value
        case str():
            return _fit(value)
        case Mapping() if depth:
            return {_fit(str(key)): _redacted(item, depth - 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset() if depth:
            return [_redacted(item, depth - 1) for item in value]
        case _:
            return _fit(str(value))


def _fit(text: str) -> str:
    """Without secrets, of bearable length, and such that any stream can take it."""
    return clip(redact(text), TEXT_LIMIT).encode(errors="replace").decode()
