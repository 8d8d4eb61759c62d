"""Boards put together by type, with the pools that use them and what waits there; and what does not fit together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from controller.domain.pages import BoardRow, BoardTally, HoldRow, WaitingGroup
from controller.settings import Pool
from controller.web.shown import Shown, show_board

STATES = (
    "busy",
    "promised",
    "free",
    "held",
    "cordoned",
    "tainted",
    "not_ready",
    "unreachable",
    "no_resource",
)


def show_boards(
    rows: Iterable[BoardRow],
    pools: Iterable[Pool],
    holds: tuple[HoldRow, ...],
    now: datetime,
    *,
    sees_private: bool,
) -> list[Shown]:
    """Boards with the pools that each serves."""
    serving: dict[str, list[str]] = {}
    for pool in pools:
        serving.setdefault(pool.board, []).append(pool.name)
    return [
        show_board(row, serving.get(row.board or "", ()), holds, now, sees_private=sees_private)
        for row in rows
    ]


def grouped(
    boards: Iterable[Shown], tallies: Iterable[BoardTally], queue: Mapping[str, Shown] | None = None
) -> list[Shown]:
    """Boards of one type together: how many there are in which state, shown or not, and what waits for them."""
    groups, counted = [], states_by_type(tallies)
    for board, found in groupby(boards, key=lambda row: row["board"]):
        tiles = list(found)
        counts = counted[board]
        known = [state for state in STATES if counts[state]]
        states = [(state, counts[state]) for state in (*known, *sorted(counts.keys() - set(STATES)))]
        groups.append(
            {
                "board": board,
                "pools": tiles[0]["pools"],
                "tiles": tiles,
                "states": states,
                "waiting": [queue[pool] for pool in tiles[0]["pools"] if queue and pool in queue],
            }
        )
    return groups


def states_by_type(tallies: Iterable[BoardTally]) -> defaultdict[str | None, Counter[str]]:
    """The states of the boards of each type."""
    found: defaultdict[str | None, Counter[str]] = defaultdict(Counter)
    for one in tallies:
        found[one.board][one.state] += one.boards
    return found


def in_states(tallies: Iterable[BoardTally], *states: str) -> int:
    """How many boards are in one of these states."""
    return sum(one.boards for one in tallies if one.state in states)


def queue_by_pool(groups: Iterable[WaitingGroup], now: datetime) -> dict[str, Shown]:
    """How much waits in each pool, and for how long at most."""
    found: dict[str, Shown] = {}
    for group in groups:
        name = group.pool or ""
        pool = found.setdefault(name, {"pool": name, "jobs": 0, "oldest_wait_seconds": 0})
        pool["jobs"] += group.jobs
        waited = max(0, round((now - group.oldest_at).total_seconds())) if group.oldest_at else 0
        pool["oldest_wait_seconds"] = max(pool["oldest_wait_seconds"], waited)
    return found


def queue_by_reason(groups: Iterable[WaitingGroup]) -> list[Shown]:
    """How many jobs wait for which reason, the commonest first; None: they are about to start, or not judged."""
    counts: Counter[tuple[str | None, bool]] = Counter()
    for group in groups:
        counts[group.reason, group.unjudged] += group.jobs
    return [
        {"reason": reason, "unjudged": unjudged, "jobs": jobs}
        for (reason, unjudged), jobs in counts.most_common()
    ]


def without_boards(pools: Sequence[Pool], tallies: Iterable[BoardTally]) -> list[Pool]:
    """Pools that no node was ever seen for: a typing mistake, or a board that is not joined yet."""
    seen = {one.board for one in tallies}
    return [pool for pool in pools if pool.board not in seen]
