"""The breaker: which boards and pools are held after failures, and which may only be tried. Pure.

It keeps no state of its own: a hold follows from how the last workers ended, so a restart changes nothing. A run
of failures that any success breaks is held for 1, 2, 4 … 30 min after its newest; then one worker may try. A refused
image holds every pool that has it, and is tried by one worker for all of them. A pool whose image nobody has seen work
lately is tried by a few workers first.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from controller.decide.trials import Trial, try_again, try_first
from controller.domain.constants import BACK_OFF_FIRST, BACK_OFF_LAST, BREAKER_FAILURES
from controller.domain.endings import Ending
from controller.domain.holds import Hold, HoldScope, HoldWhy

WHO = "breaker"


@dataclass(frozen=True, slots=True)
class Breakers:
    """What the last endings ask for."""

    holds: tuple[Hold, ...]  # in force at `now`
    trials: Mapping[str, Trial] = field(default_factory=dict)  # pools that have not shown that they work
    boards: frozenset[str] = frozenset()  # boards whose hold is over but that have not shown so since


def judge_breakers(endings: Sequence[Ending], images: Mapping[str, str], now: datetime) -> Breakers:
    """Read the endings, newest first; those of an image that the pool has no more say nothing of it."""
    boards: dict[str, list[Ending]] = defaultdict(list)
    pools: dict[str, list[Ending]] = defaultdict(list)
    by_image: dict[str, list[Ending]] = defaultdict(list)  # whichever pool they were in
    for ending in endings:
        if ending.at > now + BACK_OFF_LAST:
            continue  # of a clock that was ahead: it would hold boards until that time comes
        by_image[ending.image].append(ending)
        if images.get(ending.pool, ending.image) != ending.image:
            continue
        pools[ending.pool].append(ending)
        if ending.node is not None:
            boards[ending.node].append(ending)
    holds = [hold for node, ended in boards.items() if (hold := _board_hold(node, ended)) is not None]
    refused: set[str] = set()  # pools whose image was
    for pool in sorted(images.keys() | pools.keys()):
        ended = pools[pool]
        alike = by_image[images[pool]] if pool in images else ended
        hold = _refusal(pool, ended, alike)
        if hold is not None:
            refused.add(pool)
        hold = hold or _pool_hold(pool, ended)
        if hold is not None:
            holds.append(hold)
    in_force = tuple(hold for hold in holds if hold.until is not None and hold.until > now)
    over = [hold for hold in holds if hold not in in_force]
    unseen = {name: image for name, image in images.items() if not any(each.good for each in pools[name])}
    trials = {name: try_first(image) for name, image in unseen.items()}
    for hold in over:
        if hold.scope is HoldScope.POOL:
            trials[hold.target] = try_again(hold.note, shared=hold.target in refused)
    tried = frozenset(hold.target for hold in over if hold.scope is HoldScope.BOARD)
    return Breakers(in_force, trials, tried)


def _bad_run(ended: Iterable[Ending]) -> list[Ending]:
    """The failures since the last success; endings that say nothing are passed over."""
    run: list[Ending] = []
    for ending in ended:
        if ending.good:
            break
        if ending.bad:
            run.append(ending)
    return run


def _board_hold(node: str, ended: Iterable[Ending]) -> Hold | None:
    run = _bad_run(ended)
    if len(run) < BREAKER_FAILURES:
        return None
    note = f"the last {len(run)} workers on it failed: {run[0].reason}"
    return _hold(HoldScope.BOARD, node, run, len(run) - BREAKER_FAILURES, note)


def _refusal(pool: str, ended: Sequence[Ending], alike: Sequence[Ending]) -> Hold | None:
    """The hold for a refused image: that it was refused in another pool counts as if it had been here.

    What failed on the other pool's boards does not, and a success there does not undo what was refused here: boards
    may still keep an older image of the same tag.
    """
    found: list[Hold] = []
    for run in (_bad_run(ended), [ending for ending in _bad_run(alike) if ending.names_image]):
        refused = [ending for ending in run if ending.names_image]
        if refused:
            note = f"the image was refused: {refused[0].reason}"
            found.append(_hold(HoldScope.POOL, pool, run, len(refused) - 1, note))
    return max(found, key=lambda hold: hold.until or hold.created_at, default=None)


def _pool_hold(pool: str, ended: Iterable[Ending]) -> Hold | None:
    """Failures of one board are that board's; of two in a row the pool's."""
    run = _bad_run(ended)
    boards = {ending.node for ending in run if ending.node is not None}
    if len(run) < BREAKER_FAILURES or len(boards) < 2:
        return None
    note = f"the last {len(run)} workers failed on {len(boards)} boards: {run[0].reason}"
    return _hold(HoldScope.POOL, pool, run, len(run) - BREAKER_FAILURES, note)


def _hold(scope: HoldScope, target: str, run: Sequence[Ending], level: int, note: str) -> Hold:
    patience = min(BACK_OFF_FIRST * float(2 ** min(level, 10)), BACK_OFF_LAST)
    return Hold(
        scope=scope,
        target=target,
        why=HoldWhy.BREAKER,
        who=WHO,
        created_at=run[-1].at,
        until=run[0].at + patience,
        note=note,
        level=level + 1,
    )
