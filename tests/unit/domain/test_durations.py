"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.domain.durations import UNITS, parse_duration, show_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("1h", 3_600), ("1d", 86_400), (" 2h ", 7_200), ("007s", 7)],
)
def test_a_number_and_a_unit_are_read(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Missing time unit"),
        ("   ", "Missing time unit"),
        ("30", "Missing time unit"),
        ("1.5", "Missing time unit"),
        (30, "Missing time unit"),
        (None, "Missing time unit"),
        ("-5m", "Negative intervals are not allowed"),
        ("-1.5h", "Negative intervals are not allowed"),
        ("0m", "Zero interval is not allowed"),
        ("5w", 'Invalid time unit "w". Valid units are: s, m, h, d'),
        ("5M", 'Invalid time unit "M"'),
        ("5 m", "Expected format"),
        ("m5", "Expected format"),
        ("1h30m", "Expected format"),
        ("1.5h", "Decimal values are not supported; write 90m"),
        ("0.5d", "Decimal values are not supported; write 12h"),
        ("1.5s", "Decimal values are not supported"),
        ("9999999999999d", "too long"),
    ],
)
def test_everything_else_is_refused_with_what_is_wrong(text: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^(?s:.*)") as raised:
        parse_duration(text)
    assert sentence in str(raised.value)


@given(st.text())
def test_no_text_is_anything_but_read_or_refused(text: str) -> None:
    try:
        duration = parse_duration(text)
    except ValueError:
        return
    assert duration > timedelta()


@given(st.integers(1, 10_000), st.sampled_from(sorted(UNITS)))
def test_what_is_read_has_the_units_length(number: int, unit: str) -> None:
    assert parse_duration(f"{number}{unit}") == timedelta(seconds=number * UNITS[unit])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (45, "45s"),
        (200, "3m 20s"),
        (7_500, "2h 5m"),
        (273_600, "3d 4h"),
        (86_400, "1d"),
        (-5, "0s"),
    ],
)
def test_durations_are_shown_with_their_two_largest_parts(seconds: int, shown: str) -> None:
    assert show_duration(timedelta(seconds=seconds)) == shown
