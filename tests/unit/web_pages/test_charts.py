"""Charts: what is measured is drawn where it belongs, and what is not measured is not drawn."""

from datetime import timedelta

import pytest

from controller.domain.charts import BoardDay, Charts, FailurePoint, PoolPoint, Span, WaitPoint
from controller.web.charts import ceiling, dots, draw_charts, floor, line, strip
from tests.clocks import EPOCH as NOW


@pytest.mark.parametrize("span", list(Span))
def test_now_lies_in_the_last_bucket(span: Span) -> None:
    for moment in (NOW, NOW + timedelta(minutes=7, seconds=13)):
        last = span.start(moment) + span.bucket * (span.buckets - 1)
        assert last <= moment < last + span.bucket


def test_a_line_breaks_where_nothing_was_measured_and_a_lone_point_is_a_dot() -> None:
    values = [0, 5, None, 10]
    assert (line(values, 10), dots(values, 10)) == ("M0.5 100L1.5 50", "M3.5 0h0")
    assert line([None, None], 10) == dots([None, None], 10) == ""


def test_lines_without_anything_to_see_do_not_hide_each_other() -> None:
    values = [0, 0, 0, 10, 0, 0, None, 0, 0.04]
    assert (line(values, 10), dots(values, 10)) == ("M2.5 100L3.5 0L4.5 100", "")
    assert floor({"a": values, "b": [None] * 8 + [7]}) == "M0 100h6M7 100h2"
    assert floor({"a": [None, None]}) == floor({}) == ""


@pytest.mark.parametrize(("values", "top"), [([], 1), ([0.5], 1), ([1.1], 2), ([100], 100), ([101], 200)])
def test_the_upper_edge_is_the_next_round_number(values: list[float], top: float) -> None:
    assert ceiling(values, (1, 2, 4, 10, 100)) == top


def test_a_boards_day_is_as_high_as_it_was_busy() -> None:
    assert strip(BoardDay("n", (0.0, 1.0, 0.25))) == "M1 100V0h1V100zM2 100V75h1V100z"


def test_four_charts_say_in_words_what_they_show() -> None:
    points = (PoolPoint("fast", 95, 3, 0.5), PoolPoint("gone", 94, 1, None))
    waits = (WaitPoint("fast", 95, 7, timedelta(seconds=12), timedelta(seconds=50)),)
    failures = (FailurePoint(95, "pod_failed", 2), FailurePoint(95, "pod_missing", 1))
    charts = draw_charts(Charts(Span.DAY, Span.DAY.start(NOW), points, waits, failures), ["fast"])
    assert [chart.key for chart in charts] == ["queue", "waits", "utilisation", "failures"]
    assert [(one.name, one.last) for one in charts[0].series] == [("fast", "3"), ("gone", "1")]
    assert [(one.name, one.last, one.dashed) for one in charts[1].series] == [
        ("fast", "12s", False),
        ("fast, 95 %", "50s", True),
        ("gone", "–", False),
        ("gone, 95 %", "–", True),
    ]
    assert charts[1].tips[-2:] == ("no job started", "fast 12s, 95 % within 50s")
    assert charts[1].summary.startswith(
        "Wait until start, last 24h; median of the last 15m; dashed: 95 % waited less: fast 12s, 95 % within 50s; gone"
    )
    assert charts[2].tips[-1] == "fast 50 %"
    assert charts[3].tips[-2:] == ("no failure", "pod failed 2 · pod missing 1")
    assert charts[3].top == "4"
    assert charts[0].note == "most at once in the last 15m"
    assert charts[2].note == "mean of the last 15m"
    assert [chart.floor for chart in charts] == ["M94 100h2", "M95 100h1", "M95 100h1", ""]
    assert all("now" not in chart.summary for chart in charts)


def test_a_reason_keeps_its_colour_whichever_others_there_are() -> None:
    def tones(*reasons: str) -> dict[str, int]:
        failures = tuple(FailurePoint(95, reason, 1) for reason in reasons)
        chart = draw_charts(Charts(Span.DAY, Span.DAY.start(NOW), failures=failures), [])[3]
        return {one.name: one.tone for one in chart.series}

    both = tones("node_unreachable", "pod_failed")
    assert len(set(both.values())) == 2
    assert tones("pod_failed")["pod failed"] == both["pod failed"]
    assert tones("pod_failed", "pod_missing", "no_job_ran")["pod failed"] == both["pod failed"]
    assert tones("something_newer")


def test_empty_charts_say_so() -> None:
    charts = draw_charts(Charts(Span.WEEK, Span.WEEK.start(NOW)), [])
    assert all(chart.empty for chart in charts)
