"""Holds: what starts no new worker for now, for whichever reason. One check for all of them."""

from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class Holds:
    """All holds, by what they are on."""

    by_target: Mapping[tuple[HoldScope, str], tuple[Hold, ...]] = field(default_factory=dict)

    def on(self, scope: HoldScope, target: str, now: datetime) -> Hold | None:
        """The hold in force that lasts longest, if any."""
        forced = [h for h in self.by_target.get((scope, target), ()) if h.until is None or h.until > now]
        return max(forced, key=lambda hold: (hold.until is None, hold.until), default=None)

    def boards(self, now: datetime) -> frozenset[str]:
        """The nodes that get no new worker."""
        return frozenset(
            target
            for scope, target in self.by_target
            if scope is HoldScope.BOARD and self.on(scope, target, now) is not None
        )
