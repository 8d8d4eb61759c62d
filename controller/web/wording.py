"""The figures behind a stored reason, in words. The sentences themselves stand in `domain.reasons`."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from controller.domain.budgets import Scarce
from controller.domain.constants import JIT_PER_MINUTE
from controller.domain.reasons import EXPLANATIONS, Reason, Skip

Detail = Mapping[str, Any]
REASON_NAMES = re.compile(rf"\b({'|'.join(Reason)})\b")

STAGES = {
    "reserved": "reserved",
    "jit": "registered at GitHub",
    "pod": "pod made",
    "running": "starting up",
    "online": "online",
    "ended": "just ended",
}
HOLDS = {
    "pause": "paused",
    "drain": "drained",
    "breaker": "held after failures",
    "quiet_hours": "in quiet hours",
    "trial": "being tried",
}
SCARCE = {
    Scarce.HOURLY.value: "The requests that GitHub allows per hour are used up.",
    Scarce.SECONDARY.value: "GitHub has asked for a pause.",
    Scarce.PACE.value: f"Switchboard asks for no more than {JIT_PER_MINUTE} a minute, and those are taken.",
}


def in_figures(reason: str, detail: Detail) -> str:
    """One short sentence of what was counted when the decision was stored; empty if nothing was."""
    say = WORDS.get(reason)
    return say(detail) if say is not None and isinstance(detail, Mapping) else ""


def noted(note: object) -> str:
    """A note, with the names of reasons in it as words: the breaker writes which one it was."""
    return REASON_NAMES.sub(lambda found: found[0].replace("_", " "), str(note))


def plural(number: object, word: str) -> str:
    """`1 board`, `2 boards`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def tally(counts: object, names: Mapping[str, str] | None = None) -> str:
    """`5 busy, 1 not ready`."""
    if not isinstance(counts, Mapping):
        return ""
    known = names or {}
    return ", ".join(
        f"{number} {known.get(str(name), str(name).replace('_', ' '))}" for name, number in counts.items()
    )


def _slots(detail: Detail) -> str:
    if "boards" not in detail:
        return ""
    if not detail["boards"]:
        return "There is no board of this type."
    states = tally(detail.get("states"))
    return (
        f"{plural(detail['boards'], 'board')}: {states}."
        if states
        else f"{plural(detail['boards'], 'board')}."
    )


def _cap(detail: Detail) -> str:
    return (
        f"It may have {plural(detail['max_workers'], 'runner')} at once." if "max_workers" in detail else ""
    )


def _hold(detail: Detail) -> str:
    if not detail.get("target"):
        return ""
    why = HOLDS.get(str(detail.get("why")), str(detail.get("why") or "held"))
    note = f": {noted(detail['note'])}" if detail.get("note") else ""
    return f"{str(detail.get('scope') or '').capitalize()} {detail['target']} is {why}{note}."


def _attempts(detail: Detail) -> str:
    if not detail.get("attempts"):
        return ""
    last = next((text for name, text in EXPLANATIONS.items() if name == detail.get("last_failure")), None)
    told = f" The last one: {last.sentence}" if last and detail.get("last_failure") in list(Reason) else ""
    return f"{plural(detail['attempts'], 'attempt')} failed so far.{told}"


def _idle(detail: Detail) -> str:
    workers = detail.get("workers")
    return f"Idle: {', '.join(map(str, workers))}." if isinstance(workers, list) and workers else ""


def _coming(detail: Detail) -> str:
    if not isinstance(detail.get("workers"), int):
        return ""
    stages = tally(detail.get("stages"), STAGES)
    return f"{plural(detail['workers'], 'runner')}: {stages}." if stages else ""


def _nearest(detail: Detail) -> str:
    nearest = detail.get("nearest")
    return f"Nearest: [{', '.join(map(str, nearest))}]." if isinstance(nearest, list) and nearest else ""


def _fork(detail: Detail) -> str:
    why = str(detail.get("why") or "")
    return f"{why[:1].upper()}{why[1:]}." if why else ""


def _scarce(detail: Detail) -> str:
    return SCARCE.get(str(detail.get("why")), "")


def _unknown(detail: Detail) -> str:
    return f"It said: {detail['why']}" if detail.get("why") else ""


WORDS: Mapping[str, Callable[[Detail], str]] = {
    Skip.NOT_CONFIRMED: _fork,
    Skip.NOT_ALLOWED: _fork,
    Skip.NO_FREE_SLOTS: _slots,
    Skip.ENTITY_AT_MAX_WORKERS: _cap,
    Skip.HELD: _hold,
    Skip.BACKING_OFF: _attempts,
    Skip.GAVE_UP: _attempts,
    Skip.NOT_PICKED_UP: _idle,
    Skip.RUNNER_ON_ITS_WAY: _coming,
    Skip.NO_POOL: _nearest,
    Skip.GITHUB_BUDGET_LOW: _scarce,
    Skip.CLUSTER_UNKNOWN: _unknown,
}
