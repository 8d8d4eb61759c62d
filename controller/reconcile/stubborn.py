"""Deliveries that GitHub lists but does not hand out: tried after all others, and not for ever."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from controller.domain.constants import PULL_GIVES_UP_AFTER, PULL_TRIES
from controller.domain.sightings import DeliverySighting


@dataclass(frozen=True, slots=True)
class Refusals:
    """How often a delivery could not be fetched, and when first and last."""

    times: int
    first_at: datetime
    last_at: datetime

    @property
    def too_many(self) -> bool:
        """Whether it failed often enough and for long enough: an outage of GitHub is neither."""
        return self.times >= PULL_TRIES and self.last_at - self.first_at >= PULL_GIVES_UP_AFTER


@dataclass(slots=True)
class Stubborn:
    """What one App's pulls remember of them."""

    _refusals: dict[str, Refusals] = field(default_factory=dict)

    def knows(self, guid: str) -> bool:
        """Whether it could not be fetched before."""
        return guid in self._refusals

    def turn(self, listed: DeliverySighting) -> tuple[int, datetime, int]:
        """Its place in line: what has failed least is tried first, then the oldest."""
        refusals = self._refusals.get(listed.guid)
        return (refusals.times if refusals else 0, listed.delivered_at, listed.id)

    def failed(self, guid: str, now: datetime) -> Refusals:
        """Count one more failure."""
        before = self._refusals.get(guid, Refusals(0, now, now))
        refusals = self._refusals[guid] = Refusals(before.times + 1, before.first_at, now)
        return refusals

    def given_up(self, guid: str) -> bool:
        """Whether it is tried no more."""
        refusals = self._refusals.get(guid)
        return refusals is not None and refusals.too_many

    def keep(self, guids: Collection[str]) -> None:
        """Forget all but these."""
        self._refusals = {guid: each for guid, each in self._refusals.items() if guid in guids}
