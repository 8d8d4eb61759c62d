"""Faults of webhook delivery: lost, failed, doubled, late; by probability or by a rule for certain ones."""

import random
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Literal

Kind = Literal["lose", "fail", "duplicate", "delay"]


@dataclass(slots=True)
class WebhookRule:
    """Spoil certain deliveries, whatever the probabilities say."""

    kind: Kind
    event: str = "workflow_job"
    action: str | None = None
    job_id: int | None = None
    times: int | None = 1
    delay: timedelta = timedelta(minutes=1)
    hits: int = 0

    def fits(self, event: str, action: str | None, job_id: int | None) -> bool:
        """Whether the rule is about this delivery."""
        if self.times is not None and self.hits >= self.times:
            return False
        return event == self.event and self.action in (None, action) and self.job_id in (None, job_id)


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one delivery: `lost` is never attempted nor listed, `failed` is listed but never sent."""

    lost: bool = False
    failed: bool = False
    copies: int = 1
    delay: timedelta = timedelta(0)


@dataclass(slots=True)
class WebhookFaults:
    """Probabilities in [0, 1]; a reordered delivery is held back up to `reorder_within`, past later ones."""

    rng: random.Random
    lose: float = 0.0
    fail: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_within: timedelta = timedelta(seconds=30)
    delay: float = 0.0
    delay_within: timedelta = timedelta(minutes=5)
    rules: list[WebhookRule] = field(default_factory=list)

    def clear(self) -> None:
        """No faults any more."""
        fresh = WebhookFaults(self.rng)
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    def fate(self, event: str, action: str | None, job_id: int | None) -> Fate:
        """Decide what becomes of a delivery."""
        for rule in self.rules:
            if rule.fits(event, action, job_id):
                rule.hits += 1
                return _certain(rule)
        if self._happens(self.lose):
            return Fate(lost=True)
        late = timedelta(0)
        if self._happens(self.reorder):
            late += self.rng.random() * self.reorder_within
        if self._happens(self.delay):
            late += self.rng.random() * self.delay_within
        copies = 2 if self._happens(self.duplicate) else 1
        return Fate(failed=self._happens(self.fail), copies=copies, delay=late)

    def _happens(self, probability: float) -> bool:
        return probability > 0.0 and self.rng.random() < probability


def _certain(rule: WebhookRule) -> Fate:
    match rule.kind:
        case "lose":
            return Fate(lost=True)
        case "fail":
            return Fate(failed=True)
        case "duplicate":
            return Fate(copies=2)
        case "delay":
            return Fate(delay=rule.delay)
