"""`web.private`: nothing to read without a token or a session, except for probes and scrapers."""

from collections.abc import AsyncIterator

import httpx
import pytest

from controller.app import Parts, serve
from controller.errors import ConfigError
from controller.gateways.postgres.database import Database
from controller.ports import Secret
from controller.settings import File, Settings
from tests.clocks import ManualClock
from tests.integration.api.conftest import BEARER, TOKEN, a_client, an_app
from tests.integration.web_pages.conftest import SETTINGS
from tests.integration.web_pages.seeding import Seed

CLOSED = {
    "/": "html",
    "/queue": "html",
    "/jobs/1": "html",
    "/search?q=1": "html",
    "/queue.json": "json",
    "/jobs.json": "json",
    "/api/queue": "json",
    "/api/jobs/1/explain": "json",
}


@pytest.fixture
async def outsider(database: Database, clock: ManualClock, seed: Seed) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody at a private installation."""
    await seed.job(1)
    async with a_client(an_app(database, clock, settings={"web": {"private": True}})) as client:
        yield client


@pytest.mark.parametrize(("address", "form"), CLOSED.items())
async def test_everything_asks_for_the_token(outsider: httpx.AsyncClient, address: str, form: str) -> None:
    closed = await outsider.get(address)
    assert closed.status_code == 401
    assert form in closed.headers["Content-Type"]
    assert "example-org" not in closed.text
    assert (await outsider.get(address, headers={"Authorization": "Bearer wrong"})).status_code == 401
    assert (await outsider.get(address, headers=BEARER)).status_code in (200, 303)


async def test_after_signing_in_the_pages_open(outsider: httpx.AsyncClient) -> None:
    assert "/login?next=%2Fqueue" in (await outsider.get("/queue")).text
    assert (await outsider.get("/login")).status_code == 200
    await outsider.post("/login", data={"token": TOKEN})
    assert "example-org" in (await outsider.get("/queue")).text


async def test_probes_and_scrapers_stay_served(outsider: httpx.AsyncClient) -> None:
    for address in ("/health", "/ready", "/metrics"):
        assert (await outsider.get(address)).status_code == 200


async def test_private_pages_without_a_token_are_a_mistake_at_start_up(database_url: str) -> None:
    file = File.model_validate({**SETTINGS, "web": {"private": True}})
    settings = Settings(file=file, database_url=Secret(database_url))
    with pytest.raises(ConfigError, match="SWITCHBOARD_ADMIN_TOKEN"):
        await serve(settings, Parts(controller=True, receiver=False))


async def test_rows_of_private_repositories_show_fully_to_whoever_is_signed_in(
    stranger: httpx.AsyncClient, browser: httpx.AsyncClient, seed: Seed
) -> None:
    await seed.job(1, private=True, repo="example-org/secret", name="hush")
    for address in ("/queue", "/queue.json", "/jobs/1", "/jobs/1.json", "/api/queue", "/jobs"):
        hidden, shown = (await stranger.get(address)).text, (await browser.get(address)).text
        assert "example-org/secret" not in hidden, address
        assert "example-org/secret" in shown, address
