"""What is kept of a failed pod."""

from typing import Any

from controller.gateways.kubernetes.report import (
    LOG_BYTES,
    log_tail,
    make_report,
    newest_events,
    read_containers,
)


def an_event(minute: int, **fields: Any) -> dict[str, Any]:
    return {
        "type": "Warning",
        "reason": f"r{minute}",
        "message": "m",
        "count": 3,
        "lastTimestamp": f"2026-03-01T12:{minute:02}:00Z",
        **fields,
    }


def test_a_short_log_is_kept_whole() -> None:
    assert log_tail(b"one\ntwo\n") == "one\ntwo\n"


def test_only_the_last_200_lines_are_kept() -> None:
    log = "".join(f"{n}\n" for n in range(500)).encode()
    assert log_tail(log).splitlines() == [str(n) for n in range(300, 500)]


def test_only_the_last_bytes_are_kept_and_begin_with_a_whole_line() -> None:
    log = b"x" * LOG_BYTES + b"\nlast line\n"
    assert log_tail(log) == "last line\n"
    endless = b"y" * (LOG_BYTES + 5)
    assert log_tail(endless) == "y" * LOG_BYTES


def test_a_log_becomes_text_that_a_database_can_hold() -> None:
    assert log_tail(b"a\x00b\xff\xc3\xa9\n") == "abé\n"


def test_events_come_in_the_order_in_which_they_happened_and_only_the_newest() -> None:
    shuffled = [an_event(minute) for minute in (5, 1, 30, 2)] + [an_event(minute) for minute in range(31, 50)]
    kept = newest_events(shuffled)
    assert len(kept) == 20
    assert kept[-1] == {
        "type": "Warning",
        "reason": "r49",
        "message": "m",
        "count": 3,
        "last_time": "2026-03-01T12:49:00Z",
    }
    assert [event["reason"] for event in kept[:2]] == ["r30", "r31"]


def test_events_of_the_new_kind_have_their_time_elsewhere() -> None:
    event = an_event(0, lastTimestamp=None, count=None, eventTime="2026-03-01T12:00:00.000001Z")
    assert newest_events([event])[0]["last_time"] == "2026-03-01T12:00:00.000001Z"
    assert newest_events([event])[0]["count"] == 1
    repeated = {**event, "series": {"count": 9, "lastObservedTime": "2026-03-01T13:00:00Z"}}
    assert newest_events([repeated])[0]["count"] == 9


def test_containers_say_how_they_ended_or_what_they_wait_for() -> None:
    status = {
        "containerStatuses": [
            {
                "name": "runner",
                "restartCount": 2,
                "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
            },
            {"name": "side", "state": {"waiting": {"reason": "ErrImagePull", "message": "x" * 1000}}},
        ]
    }
    runner, side = read_containers(status)
    assert runner == {
        "name": "runner",
        "exit_code": 0,
        "reason": "Completed",
        "message": "",
        "restart_count": 2,
    }
    assert (side["exit_code"], side["reason"]) == (None, "ErrImagePull")
    assert len(side["message"]) <= 500


def test_a_pod_that_is_gone_leaves_an_empty_report() -> None:
    report = make_report({}, b"", ())
    assert (report.reason, report.message, report.containers, report.log_tail, report.events) == (
        None,
        None,
        (),
        "",
        (),
    )
