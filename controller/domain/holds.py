"""Holds: what starts no new worker for now, for whichever reason. One check for all of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class HoldScope(StrEnum):
    """What a hold is on."""

    POOL = "pool"
    ENTITY = "entity"
    BOARD = "board"


class HoldWhy(StrEnum):
    """What a hold comes from."""

    PAUSE = "pause"
    DRAIN = "drain"
    BREAKER = "breaker"
    QUIET_HOURS = "quiet_hours"


@dataclass(frozen=True, slots=True)
class Hold:
    """A row of `holds`."""

    scope: HoldScope
    target: str  # pool name, entity login in lower case, or node name
    why: HoldWhy
    who: str
    created_at: datetime
    until: datetime | None = None
    note: str = ""
    level: int = 1

    @property
    def detail(self) -> dict[str, Any]:
        """What the `held` sentence needs."""
        return {
            "scope": self.scope.value,
            "target": self.target,
            "why": self.why.value,
            "until": self.until.isoformat() if self.until else None,
            "note": self.note,
        }


def longest(holds: Iterable[Hold]) -> Hold | None:
    """The one that lasts longest, if any."""
    return max(holds, key=lambda hold: (hold.until is None, hold.until), default=None)


@dataclass(frozen=True, slots=True)
class Holds:
    """All holds, by what they are on."""

    by_target: Mapping[tuple[HoldScope, str], tuple[Hold, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, holds: Iterable[Hold]) -> "Holds":
        """Sort holds by what they are on."""
        found: dict[tuple[HoldScope, str], list[Hold]] = defaultdict(list)
        for hold in holds:
            found[(hold.scope, hold.target)].append(hold)
        return cls({target: tuple(each) for target, each in found.items()})

    def on(self, scope: HoldScope, target: str, now: datetime) -> Hold | None:
        """The hold in force that lasts longest, if any."""
        return longest(self._forced(scope, target, now))

    def empties(self, scope: HoldScope, target: str, now: datetime) -> bool:
        """Whether a hold in force also ends who idles there; not a breaker's: who came online is no suspect."""
        return any(hold.why is not HoldWhy.BREAKER for hold in self._forced(scope, target, now))

    def _forced(self, scope: HoldScope, target: str, now: datetime) -> list[Hold]:
        return [h for h in self.by_target.get((scope, target), ()) if h.until is None or h.until > now]

    def boards(self, now: datetime) -> frozenset[str]:
        """The nodes that get no new worker."""
        return frozenset(
            target
            for scope, target in self.by_target
            if scope is HoldScope.BOARD and self.on(scope, target, now) is not None
        )
