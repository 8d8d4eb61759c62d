"""Durations as people write them: 15s, 10m, 6h, 30d."""

import re
from datetime import timedelta

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: object) -> timedelta:
    """Read `30s`, `5m`, `1h` or `1d`; ValueError says what is wrong with anything else."""
    if isinstance(text, timedelta):
        return text
    if not isinstance(text, str) or not text.strip():
        raise ValueError('Missing time unit. Expected format: "{number}{unit}", for example 15s, 10m or 6h')
    text = text.strip()
    if re.fullmatch(r"-\d+(\.\d+)?[a-zA-Z]*", text):
        raise ValueError("Negative intervals are not allowed")
    if re.fullmatch(r"\d+(\.\d+)?", text):
        raise ValueError('Missing time unit. Expected format: "{number}{unit}", for example 15s, 10m or 6h')
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zA-Z]+)", text)
    if found is None:
        raise ValueError(f'Expected format: "{{number}}{{unit}}", for example 15s, 10m or 6h; got "{text}"')
    number, unit = found.groups()
    if unit not in UNITS:
        raise ValueError(f'Invalid time unit "{unit}". Valid units are: s, m, h, d')
    if "." in number:
        raise ValueError(f"Decimal values are not supported{_whole(float(number), unit)}")
    if int(number) == 0:
        raise ValueError("Zero interval is not allowed")
    try:
        return timedelta(seconds=int(number) * UNITS[unit])
    except OverflowError:
        raise ValueError(f'"{text}" is too long') from None


def _whole(number: float, unit: str) -> str:
    """Offer the same duration in a smaller unit when that is a whole number."""
    seconds = number * UNITS[unit]
    for smaller in reversed(UNITS):
        if UNITS[smaller] < UNITS[unit] and seconds % UNITS[smaller] == 0:
            return f"; write {int(seconds // UNITS[smaller])}{smaller}"
    return ""


def show_duration(value: timedelta) -> str:
    """Write a duration for people: `45s`, `3m 20s`, `2h 5m`, `3d 4h`."""
    seconds = max(0, round(value.total_seconds()))
    parts = [
        (seconds // 86400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "m"),
        (seconds % 60, "s"),
    ]
    shown = [(number, unit) for number, unit in parts if number]
    return " ".join(f"{number}{unit}" for number, unit in shown[:2]) or "0s"
