"""Log lines: JSON, redacted, the libraries' ones too."""

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import structlog

from controller.ports import Secret
from controller.telemetry.logs import LogFormat, setup_logs

TOKEN = "ghs_" + "a" * 36
ADDRESS = "postgresql://u:hunter2@db/x"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level


class Lines:
    """What was logged."""

    def __init__(self, format: LogFormat = "json", level: str = "info") -> None:
        self.stream = io.StringIO()
        setup_logs(format, level, self.stream)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def test_an_event_is_one_json_object_with_time_and_level() -> None:
    lines = Lines()
    structlog.get_logger().info("worker.killed", reason="runner_idle", worker="rise-1", count=3)
    (line,) = lines.all
    at = datetime.fromisoformat(line.pop("time"))
    assert at.utcoffset() is not None
    assert at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]
    assert line == {
        "event": "worker.killed",
        "level": "info",
        "reason": "runner_idle",
        "worker": "rise-1",
        "count": 3,
    }


def test_secrets_are_taken_out_of_every_text_however_deep() -> None:
    lines = Lines()
    structlog.get_logger().warning(
        "github.failed",
        error=f"token {TOKEN}",
        detail={"headers": [{"authorization": f"Bearer {TOKEN}"}], TOKEN: 1},
        address=ADDRESS,
        secret=Secret("hunter2"),
    )
    assert TOKEN not in lines.text
    assert "hunter2" not in lines.text
    assert "[redacted]" in lines.text


def test_an_exception_is_one_redacted_field() -> None:
    lines = Lines()
    try:
        raise RuntimeError(f"cannot reach {ADDRESS}")
    except RuntimeError:
        structlog.get_logger().exception("loop.failed")
    (line,) = lines.all
    assert "RuntimeError: cannot reach" in line["exception"]
    assert "hunter2" not in lines.text


def test_libraries_speak_in_the_same_form_from_warning_on() -> None:
    lines = Lines()
    for library in ("uvicorn.error", "kubernetes.client", "httpx", "psycopg.pool"):
        logging.getLogger(library).info("chatter")
        logging.getLogger(library).warning("trouble with %s", ADDRESS)
    assert [line["library"] for line in lines.all] == [
        "uvicorn.error",
        "kubernetes.client",
        "httpx",
        "psycopg.pool",
    ]
    assert {line["event"] for line in lines.all} == {"library.logged"}
    assert {line["level"] for line in lines.all} == {"warning"}
    assert "chatter" not in lines.text
    assert "hunter2" not in lines.text


def test_a_librarys_exception_is_one_field_too() -> None:
    lines = Lines()
    try:
        raise RuntimeError(ADDRESS)
    except RuntimeError:
        logging.getLogger("uvicorn.error").exception("failed")
    (line,) = lines.all
    assert (line["message"], "RuntimeError" in line["exception"]) == ("failed", True)
    assert "hunter2" not in lines.text


@pytest.mark.parametrize(("level", "shown"), [("debug", 3), ("info", 2), ("WARNING", 1)])
def test_the_level_is_kept(level: str, shown: int) -> None:
    lines = Lines(level=level)
    log = structlog.get_logger()
    log.debug("a.b")
    log.info("a.b")
    log.warning("a.b")
    assert len(lines.all) == shown


def test_the_console_format_is_for_people_and_redacted_as_well() -> None:
    lines = Lines("console")
    structlog.get_logger().info("worker.made", error=TOKEN)
    assert "worker.made" in lines.text
    assert TOKEN not in lines.text


@pytest.mark.parametrize("format", ["json", "console"])
def test_half_a_character_from_outside_does_not_break_the_log(format: LogFormat) -> None:
    written = io.BytesIO()
    setup_logs(format, "info", io.TextIOWrapper(written, encoding="utf-8", write_through=True))
    structlog.get_logger().info("pod.logged", text="\ud800", keys={"\udfff": "ü…"})
    assert b"pod.logged" in written.getvalue()


def test_a_long_text_with_line_breaks_is_cut_and_stays_one_line() -> None:
    lines = Lines()
    structlog.get_logger().info("pod.logged", text="word " * 10_000, several="a\nb")
    assert len(lines.text.splitlines()) == 1
    assert len(lines.all[0]["text"]) == 8_000
