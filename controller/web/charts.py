"""Charts: from points to paths for inline SVG, with the words that go beside and instead of them.

A plot is as wide as it has buckets and 100 high; the style sheet stretches it. Lines break where nothing was measured,
and where nothing is to be seen all of them are one: the floor, which is drawn wherever something was measured.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

from controller.domain.charts import BoardDay, Charts, Span
from controller.domain.durations import show_duration
from controller.domain.reasons import HARMLESS, Reason
from controller.web.reader import PageDeps

HEIGHT = 100
TONES = 8  # colours in the style sheet for pools, and as many others for reasons
FLOOR = 0.005  # of the height: what is lower lies on the lowest line
FAULT_TONES = {  # a reason keeps its colour, whichever others there are
    reason.value: place % TONES
    for place, reason in enumerate(reason for reason in Reason if reason not in HARMLESS)
}
COUNTS = (1, 2, 4, 6, 10, 20, 30, 40, 60, 100)
SPANS = (10, 30, 60, 120, 300, 600, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 21600, 43200, 86400)
KEPT_FOR = {
    Span.HOUR: timedelta(seconds=3),
    Span.DAY: timedelta(seconds=10),
    Span.WEEK: timedelta(seconds=60),
}
AXIS_MARKS = 5

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one kind of bar."""

    name: str
    tone: int
    path: str
    dots: str  # points without a neighbour
    last: str  # its newest value, or for bars their sum
    values: Values  # one per bucket
    dashed: bool = False  # goes with the line before it, and has no place of its own in the legend


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as the template draws it."""

    key: str
    title: str
    bars: bool
    width: int
    top: str  # what the upper edge stands for
    series: tuple[Series, ...]
    start: datetime
    step_seconds: int
    marks: tuple[datetime, ...]
    tips: tuple[str, ...]  # what each bucket says
    summary: str  # for those who do not see it
    empty: str = ""  # what to say instead of an empty chart
    note: str = ""  # what its lines mean, where the title does not say it
    floor: str = ""  # where anything was measured


@dataclass(slots=True)
class ChartShelf:
    """Keeps what charts are drawn from for a few seconds: they change slowly, and every open page asks again."""

    deps: PageDeps
    _kept: dict[Span, tuple[datetime, Charts]] = field(default_factory=dict)
    _days: dict[tuple[tuple[str, int], ...], tuple[datetime, tuple[BoardDay, ...]]] = field(
        default_factory=dict
    )
    _asking: dict[Span | None, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    async def take(self, span: Span) -> Charts:
        """The points of a span; whoever comes while they are read waits for the same answer."""
        async with self._asking[span]:
            now = self.deps.clock.now()
            kept = self._kept.get(span)
            if kept is None or not timedelta() <= now - kept[0] < KEPT_FOR[span]:
                kept = now, await self.deps.store.charts(span, now)
                self._kept[span] = kept
            return kept[1]

    async def days(self, slots: Mapping[str, int]) -> tuple[BoardDay, ...]:
        """The last 24 hours of these boards, given with their slots."""
        key = tuple(slots.items())
        async with self._asking[None]:
            now = self.deps.clock.now()
            kept = self._days.get(key)
            if kept is None or not timedelta() <= now - kept[0] < KEPT_FOR[Span.DAY]:
                fresh = {one: at for one, at in self._days.items() if now - at[0] < KEPT_FOR[Span.DAY]}
                kept = now, await self.deps.store.board_days(dict(slots), now)
                self._days = {**fresh, key: kept}
            return kept[1]


def draw_charts(charts: Charts, pools: Sequence[str]) -> list[Chart]:
    """Queue depth, waits and utilisation per pool, failures by reason."""
    measured = {point.pool for point in charts.pools} | {point.pool for point in charts.waits}
    known = [*pools, *sorted(measured - set(pools))]
    depth = {
        pool: spread(charts, ((p.bucket, p.queue_depth) for p in charts.pools if p.pool == pool))
        for pool in known
    }
    used = {
        pool: spread(charts, ((p.bucket, p.utilisation) for p in charts.pools if p.pool == pool))
        for pool in known
    }
    reasons = sorted({point.reason for point in charts.failures})
    failed = {
        reason: spread(charts, ((p.bucket, p.workers) for p in charts.failures if p.reason == reason))
        for reason in reasons
    }
    return [
        _lines(charts, "queue", "Jobs waiting", depth, _count, COUNTS, "most at once in"),
        _waits(charts, known),
        _lines(charts, "utilisation", "Boards in use", used, _share, (1,), "mean of"),
        _bars(charts, "failures", "Failed workers", failed),
    ]


def spread(charts: Charts, points: Iterable[tuple[int, float | None]]) -> Values:
    """One value per bucket; None where nothing was measured."""
    values: list[float | None] = [None] * charts.span.buckets
    for bucket, value in points:
        if 0 <= bucket < len(values):
            values[bucket] = value
    return values


def line(values: Values, top: float) -> str:
    """A path through the middle of each bucket."""
    return "".join(
        "M" + "L".join(f"{x:g} {y:.4g}" for x, y in run) for run in _runs(values, top) if len(run) > 1
    )


def dots(values: Values, top: float) -> str:
    """A path that has no length at each point without a neighbour: its round ends make it a dot."""
    return "".join(f"M{x:g} {y:.4g}h0" for run in _runs(values, top) if len(run) == 1 for x, y in run)


def _runs(values: Values, top: float) -> list[list[tuple[float, float]]]:
    """Points in a row, but for those on the floor that lead nowhere."""
    shares = [None if value is None else min(1.0, value / top) for value in values]
    high = [False, *(share is not None and share > FLOOR for share in shares), False]
    drawn = [share is not None and any(high[x : x + 3]) for x, share in enumerate(shares)]
    points = enumerate(zip(drawn, shares, strict=True))
    return [
        [(x + 0.5, HEIGHT - HEIGHT * (share or 0.0)) for x, (_, share) in run]
        for seen, run in groupby(points, key=lambda point: point[1][0])
        if seen
    ]


def floor(named: Mapping[str, Values]) -> str:
    """The lowest line, wherever any of them was measured."""
    known = [any(value is not None for value in column) for column in zip(*named.values(), strict=True)]
    path, place = "", 0
    for seen, run in groupby(known):
        width = len(list(run))
        path += f"M{place} {HEIGHT}h{width}" if seen else ""
        place += width
    return path


def ceiling(values: Iterable[float | None], steps: Sequence[int]) -> float:
    """The next round number above all values."""
    highest = max((value for value in values if value is not None), default=0.0)
    for step in steps:
        if highest <= step:
            return float(step)
    top = float(steps[-1])
    while top < highest:
        top *= 2
    return top


def strip(day: BoardDay) -> str:
    """A board's day as one path of bars: as high as it was busy."""
    return "".join(
        f"M{place} {HEIGHT}V{HEIGHT - HEIGHT * share:.3g}h1V{HEIGHT}z"
        for place, share in enumerate(day.busy)
        if share > 0
    )


def _lines(
    charts: Charts,
    key: str,
    title: str,
    named: Mapping[str, Values],
    say: Callable[[float], str],
    steps: Sequence[int],
    means: str,
) -> Chart:
    top = ceiling((value for values in named.values() for value in values), steps)
    series = tuple(
        Series(name, tone % TONES, line(values, top), dots(values, top), _said(_last(values), say), values)
        for tone, (name, values) in enumerate(named.items())
    )
    highest = max((value for values in named.values() for value in values if value is not None), default=None)
    now = ", ".join(f"{one.name} {one.last}" for one in series)
    summary = (
        f"{title}, last {charts.span.value}; {means} the last {_bucket(charts)}: {now}; highest {say(highest)}."
        if highest is not None
        else ""
    )
    empty = (
        ""
        if highest is not None
        else "Nothing was measured in this time yet; the first point comes within minutes."
    )
    return _chart(
        charts,
        key,
        title,
        False,
        say(top),
        series,
        _tips(named, say, "not measured"),
        summary,
        empty,
        f"{means} the last {_bucket(charts)}",
        floor(named),
    )


def _waits(charts: Charts, pools: Sequence[str]) -> Chart:
    """Per pool the median, and dashed what 95 % of the jobs stayed below."""
    seconds = [(p.pool, p.bucket, p.median.total_seconds(), p.slow.total_seconds()) for p in charts.waits]
    half = {
        pool: spread(charts, ((at, wait) for its, at, wait, _ in seconds if its == pool)) for pool in pools
    }
    most = {
        pool: spread(charts, ((at, wait) for its, at, _, wait in seconds if its == pool)) for pool in pools
    }
    top = ceiling((value for values in most.values() for value in values), SPANS)
    series = []
    for tone, pool in enumerate(pools):
        for name, values in ((pool, half[pool]), (f"{pool}, 95 %", most[pool])):
            last = _said(_last(values), _time)
            series.append(
                Series(
                    name,
                    tone % TONES,
                    line(values, top),
                    dots(values, top),
                    last,
                    values,
                    dashed=values is most[pool],
                )
            )
    said = {
        pool: [_wait_said(*waits) for waits in zip(half[pool], most[pool], strict=True)] for pool in pools
    }
    tips = tuple(
        " · ".join(f"{pool} {said[pool][place]}" for pool in pools if said[pool][place]) or "no job started"
        for place in range(charts.span.buckets)
    )
    now = "; ".join(f"{pool} {_wait_said(_last(half[pool]), _last(most[pool])) or '–'}" for pool in pools)
    title = "Wait until start"
    note = f"median of the last {_bucket(charts)}; dashed: 95 % waited less"
    summary = f"{title}, last {charts.span.value}; {note}: {now}."
    empty = "" if charts.waits else "No job started in this time."
    return _chart(
        charts, "waits", title, False, _time(top), tuple(series), tips, summary, empty, note, floor(half)
    )


def _wait_said(half: float | None, most: float | None) -> str:
    return "" if half is None or most is None else f"{_time(half)}, 95 % within {_time(most)}"


def _bars(charts: Charts, key: str, title: str, named: Mapping[str, Values]) -> Chart:
    totals = [sum(values[place] or 0 for values in named.values()) for place in range(charts.span.buckets)]
    top = ceiling(totals, COUNTS)
    below = [0.0] * charts.span.buckets
    series = []
    for name, values in named.items():
        path = []
        for place, value in enumerate(values):
            if value:
                base, height = HEIGHT * below[place] / top, HEIGHT * value / top
                path.append(f"M{place + 0.1:g} {HEIGHT - base:.4g}v{-height:.4g}h.8v{height:.4g}z")
                below[place] += value
        series.append(
            Series(
                name.replace("_", " "),
                FAULT_TONES.get(name, TONES - 1),
                "".join(path),
                "",
                _count(sum(value or 0 for value in values)),
                values,
            )
        )
    total = _count(sum(totals))
    told = ", ".join(f"{one.name} {one.last}" for one in series)
    summary = f"{title}, last {charts.span.value}: {total} in all; {told}."
    empty = "" if series else "No worker failed in this time."
    return _chart(
        charts,
        key,
        title,
        True,
        _count(top),
        tuple(series),
        _tips({one.name: one.values for one in series}, _count, "no failure"),
        summary,
        empty,
    )


def _chart(
    charts: Charts,
    key: str,
    title: str,
    bars: bool,
    top: str,
    series: tuple[Series, ...],
    tips: tuple[str, ...],
    summary: str,
    empty: str,
    note: str = "",
    floor: str = "",
) -> Chart:
    whole = charts.span.bucket * charts.span.buckets
    marks = tuple(charts.start + whole * place / (AXIS_MARKS - 1) for place in range(AXIS_MARKS))
    step = int(charts.span.bucket.total_seconds())
    return Chart(
        key,
        title,
        bars,
        charts.span.buckets,
        top,
        series,
        charts.start,
        step,
        marks,
        tips,
        summary,
        empty,
        note,
        floor,
    )


def _tips(named: Mapping[str, Values], say: Callable[[float], str], nothing: str) -> tuple[str, ...]:
    columns = zip(*named.values(), strict=True) if named else ()
    return tuple(
        " · ".join(
            f"{name} {say(value)}" for name, value in zip(named, column, strict=True) if value is not None
        )
        or nothing
        for column in columns
    )


def _bucket(charts: Charts) -> str:
    """How long a point of a chart is a mean of."""
    return show_duration(charts.span.bucket)


def _last(values: Values) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _said(value: float | None, say: Callable[[float], str]) -> str:
    return "–" if value is None else say(value)


def _count(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _time(value: float) -> str:
    return show_duration(timedelta(seconds=value))
