"""The gateway as the program uses it, against the simulated GitHub over HTTP."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from controller.domain.jobs import Scope
from controller.gateways.github import GitHubGateway, Observation, RunnerGroup
from controller.simulators.github import GitHubSimulator
from tests.clocks import ManualClock
from tests.worlds import GitHubWorld, a_github, plain_http

GROUP = RunnerGroup("RISE RISC-V Runners", "all", True)
LABELS = ("ubuntu-24.04-riscv",)


@dataclass(frozen=True, slots=True)
class World:
    """A GitHub, and the gateway to it."""

    github: GitHubWorld
    clock: ManualClock
    gateway: GitHubGateway
    seen: list[Observation] = field(default_factory=list)

    @property
    def sim(self) -> GitHubSimulator:
        """The GitHub from inside."""
        return self.github.sim

    @property
    def acme(self) -> Scope:
        """The organization."""
        return self.github.scope("acme")

    @property
    def jane(self) -> Scope:
        """A repository of the personal account."""
        return self.github.scope("jane/one")

    def times(self, operation: str, status: int | None = None) -> int:
        """How often GitHub was asked so."""
        return self.sim.requests.times(operation, status=status)

    async def advance(self, **length: float) -> None:
        await self.clock.advance(timedelta(**length))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = ManualClock()
    seen: list[Observation] = []
    async with (
        a_github(clock) as github,
        GitHubGateway(
            github.base_url,
            github.apps,
            clock,
            runner_group=GROUP,
            observe=seen.append,
            transport=plain_http(),
        ) as gateway,
    ):
        yield World(github, clock, gateway, seen)
