"""Faults at the HTTP boundary: rules that match a request and spoil it before or after its effect.

Whether a rule applies depends on operation, path, installation, a count and a probability. Webhook faults are in
`webhook_faults`.
"""

import asyncio
import itertools
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from controller.simulators.github.state import Json
from controller.simulators.github.webhook_faults import WebhookFaults

When = Literal["", "before", "after"]


@dataclass(slots=True)
class Rule:
    """One fault. Nothing but a match set: the request is only counted in `hits`."""

    name: str
    operation: str = ".*"  # whole operation id, e.g. actions/get-job-for-workflow-run
    path: str = ""  # found anywhere in the path
    installation: int | None = None
    times: int | None = 1  # None: for ever
    skip: int = 0  # let this many matches pass first
    probability: float = 1.0
    status: int | None = None  # answer this instead …
    body: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    apply: bool = False  # … but let the effect happen first
    delay: timedelta = timedelta(0)
    drop: When = ""  # cut the connection before or after the effect
    hold: When = ""  # keep the request until `release`
    hits: int = 0
    _held: asyncio.Event = field(default_factory=asyncio.Event)
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _dropped: bool = False

    def fits(self, operation: str, path: str, installation: int | None) -> bool:
        """Whether the rule is about this request, chance aside."""
        if self.times is not None and self.hits >= self.times:
            return False
        if self.installation is not None and self.installation != installation:
            return False
        return bool(re.fullmatch(self.operation, operation)) and bool(re.search(self.path, path))

    async def keep(self) -> bool:
        """Hold a request; the answer says whether to go on with it."""
        self._held.set()
        await self._released.wait()
        return not self._dropped

    @property
    def held(self) -> bool:
        """Whether a request is or was held."""
        return self._held.is_set()

    async def wait_held(self) -> None:
        """Wait until a request is held."""
        await self._held.wait()

    def release(self, drop: bool) -> None:
        """Let held requests (and later ones) go on, or cut their connections."""
        self._dropped = drop
        self._released.set()


class Faults:
    """The rules in force; the first that fits is used."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._names = itertools.count(1)
        self.rules: dict[str, Rule] = {}
        self.webhooks = WebhookFaults(rng)

    def add(self, rule: Rule | None = None, /, **fields: object) -> Rule:
        """Add a rule, given or made from its fields; it gets a name if it has none."""
        if rule is None:
            fields.setdefault("name", f"fault-{next(self._names)}")
            if isinstance(fields.get("delay"), int | float):
                fields["delay"] = timedelta(seconds=float(str(fields["delay"])))
            rule = Rule(**fields)  # type: ignore[arg-type]
        self.rules[rule.name] = rule
        return rule

    def remove(self, name: str) -> None:
        """Take a rule away; what it holds goes on."""
        rule = self.rules.pop(name, None)
        if rule is not None:
            rule.release(drop=False)

    def clear(self) -> None:
        """Take every rule away and stop all webhook faults; what was held goes on."""
        for name in list(self.rules):
            self.remove(name)
        self.webhooks.clear()

    def pick(self, operation: str, path: str, installation: int | None) -> Rule | None:
        """The rule that spoils this request, counted as a hit."""
        for rule in self.rules.values():
            if not rule.fits(operation, path, installation):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            if rule.probability < 1.0 and self._rng.random() >= rule.probability:
                continue
            rule.hits += 1
            return rule
        return None

    async def wait_held(self, name: str) -> None:
        """Wait until a request is held by the rule of that name."""
        await self.rules[name].wait_held()

    def release(self, name: str, *, drop: bool = False) -> None:
        """Let the held requests of a rule go on, or cut their connections, and take the rule away."""
        self.rules.pop(name).release(drop)
