"""The indexes over everything that exists; ids are counted up, so that a seed gives the same world."""

import itertools
from collections.abc import Iterator

from controller.simulators.github.state import (
    Account,
    App,
    Delivery,
    Installation,
    Job,
    Repository,
    Run,
    Runner,
)

FIRST_IDS = {
    "account": 1_001,
    "app": 900_001,
    "check": 40_000_000_001,
    "deployment": 2_000_001,
    "delivery": 150_000_000_001,
    "group": 2,
    "hook": 300_000_001,
    "installation": 50_000_001,
    "job": 60_000_000_001,
    "repository": 700_000_001,
    "run": 20_000_000_001,
    "runner": 101,
    "workflow": 80_000_001,
}


class World:
    """Lookup by id and by name; names compare without case, as on GitHub."""

    def __init__(self) -> None:
        self._ids: dict[str, Iterator[int]] = {kind: itertools.count(n) for kind, n in FIRST_IDS.items()}
        self.apps: dict[int, App] = {}
        self.accounts: dict[str, Account] = {}
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[str, Repository] = {}
        self.repositories_by_id: dict[int, Repository] = {}
        self.renamed: dict[str, Repository] = {}
        self.runs: dict[int, Run] = {}
        self.jobs: dict[int, Job] = {}
        self.runners: dict[int, Runner] = {}  # registered now
        self.past_runners: dict[int, Runner] = {}
        self.deliveries: dict[int, Delivery] = {}

    def next_id(self, kind: str) -> int:
        """The next id of a kind."""
        return next(self._ids[kind])

    def account(self, login: str) -> Account | None:
        """An account by login."""
        return self.accounts.get(login.lower())

    def account_by_id(self, account_id: int) -> Account | None:
        """An account by id."""
        return next((a for a in self.accounts.values() if a.id == account_id), None)

    def repository(self, full_name: str) -> Repository:
        """A repository by its present name; KeyError if there is none."""
        return self.repositories[full_name.lower()]

    def runner_named(self, name: str) -> Runner | None:
        """A runner that is registered now."""
        return next((r for r in self.runners.values() if r.name == name), None)
