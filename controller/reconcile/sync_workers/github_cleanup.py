"""Phase 4: runners of ours at GitHub whose row is ended or missing, seen so twice before they are deleted."""

from datetime import datetime

from controller.decide.leftovers import Leftover, confirmed_leftovers, find_leftover_runners
from controller.domain.changes import Decided
from controller.domain.jobs import Scope
from controller.domain.sightings import Unknown
from controller.domain.views import View
from controller.domain.workers import NameRule
from controller.ports import LockedWorkers


class GitHubCleanup:
    """Remembers, between iterations, what was seen once."""

    def __init__(self, names: NameRule) -> None:
        self._names = names
        self._first_seen: dict[Leftover, datetime] = {}

    async def run(self, view: View, workers: LockedWorkers) -> tuple[View, Decided]:
        """Look through the lists that were read in this iteration."""
        names = {
            runner.name
            for listed in view.runners.values()
            if not isinstance(listed, Unknown)
            for runner in listed
            if self._names.ours(runner.name)
        }
        found = find_leftover_runners(view, await workers.statuses(names), self._names)
        doomed = tuple(confirmed_leftovers(found, self._first_seen, view.now))
        read = {scope for scope, listed in view.runners.items() if not isinstance(listed, Unknown)}
        kept = {each: at for each, at in self._first_seen.items() if each[0] not in read or each in found}
        self._first_seen = {**dict.fromkeys(found, view.now), **kept}
        return view, Decided(effects=doomed)

    def suspects(self, scope: Scope) -> bool:
        """Whether a scope holds a runner that waits for its second look."""
        return any(leftover[0] == scope for leftover in self._first_seen)
