"""A served, strictly validated GitHub and those who ask it; a violation of the contract fails the test."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.clocks import ManualClock
from tests.contract.github.callers import MINUTE, Caller, sign_jwt
from tests.contract.github.inbox import Inbox
from tests.serving import serving
from tests.worlds import GitHubWorld, a_github, plain_http


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
async def github(clock: ManualClock) -> AsyncIterator[GitHubWorld]:
    """Everything that it says is validated; leaving it raises if anything was against the schemas."""
    async with a_github(clock) as world:
        yield world


@pytest.fixture(autouse=True)
async def _no_violations(github: GitHubWorld) -> AsyncIterator[None]:
    yield
    await github.sim.settle()
    assert github.sim.violations == []


@pytest.fixture
async def http(github: GitHubWorld) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=github.base_url, transport=plain_http()) as client:
        yield client


@pytest.fixture
def app(github: GitHubWorld, http: httpx.AsyncClient, clock: ManualClock) -> Caller:
    """The organizations' App, with a JWT that is good for nine minutes."""
    return Caller(http, _jwt(github, "111", clock))


@pytest.fixture
def user_app(github: GitHubWorld, http: httpx.AsyncClient, clock: ManualClock) -> Caller:
    """The App of personal accounts."""
    return Caller(http, _jwt(github, "222", clock))


@pytest.fixture
async def acme(github: GitHubWorld, app: Caller) -> Caller:
    """The organization's installation."""
    return await installation(github, app, "acme")


@pytest.fixture
async def jane(github: GitHubWorld, user_app: Caller) -> Caller:
    """The person's installation."""
    return await installation(github, user_app, "jane")


@pytest.fixture
async def inbox(github: GitHubWorld) -> AsyncIterator[Inbox]:
    """A receiver that webhooks go to."""
    receiver = Inbox()
    async with serving(receiver.app) as url:
        github.sim.webhook_url = f"{url}/webhook"
        yield receiver
        receiver.open.set()
        await github.sim.settle()


def _jwt(github: GitHubWorld, app_id: str, clock: ManualClock) -> str:
    return sign_jwt(github.apps[app_id], app_id, clock.now() - MINUTE, clock.now() + 9 * MINUTE)


async def installation(github: GitHubWorld, app: Caller, login: str) -> Caller:
    """Mint a token for the installation of an account."""
    number = github.scope(login).installation_id
    answer = await app.post(f"/app/installations/{number}/access_tokens")
    assert answer.status_code == 201, answer.text
    return Caller(app.http, answer.json()["token"])
