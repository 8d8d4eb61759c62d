"""Figures and the table they are printed as."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement. `limit` is the most it may be, `ratio` what it is in units of its floor."""

    name: str
    value: float
    unit: str
    limit: float
    floor: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times the floor."""
        return self.value / self.floor if self.floor else None

    @property
    def met(self) -> bool:
        """Whether it is within its limit."""
        return self.value <= self.limit


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    """The middle."""
    return statistics.median(values)


def table(figures: Iterable[Figure]) -> str:
    """All figures, a line each."""
    lines = [f"{'figure':<58} {'value':>10} {'floor':>10} {'ratio':>7} {'limit':>10}"]
    for each in figures:
        floor = f"{each.floor:.1f}" if each.floor is not None else "–"
        ratio = f"{each.ratio:.2f}" if each.ratio is not None else "–"
        mark = "" if each.met else "   over"
        name = f"{each.name} ({each.unit})"
        lines.append(f"{name:<58} {each.value:>10.1f} {floor:>10} {ratio:>7} {each.limit:>10.1f}{mark}")
    return "\n".join(lines)
