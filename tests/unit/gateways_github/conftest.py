"""A scripted GitHub and a gateway that speaks to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.gateways.github import GitHubGateway
from tests.clocks import ManualClock
from tests.unit.gateways_github.scripted import ScriptedGitHub, connected


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def github(clock: ManualClock) -> ScriptedGitHub:
    return ScriptedGitHub(clock)


@pytest.fixture
async def gateway(github: ScriptedGitHub, tmp_path: Path) -> AsyncIterator[GitHubGateway]:
    async with connected(github, tmp_path) as gateway:
        yield gateway
