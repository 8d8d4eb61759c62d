"""Fixtures that every tier may use. Nothing starts before a test asks for it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import settings

from controller.gateways.postgres.database import Database
from controller.simulators.postgres import EmbeddedPostgres
from tests.postgres import Databases, opened, postgres_server

# How long an example takes says how busy the machine is, nothing more.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """The session's PostgreSQL."""
    with postgres_server() as server:
        yield Databases(server)


@pytest.fixture
async def database_url(databases: Databases) -> AsyncIterator[str]:
    """A fresh, migrated database of one's own."""
    url = await databases.migrated()
    yield url
    await databases.drop(url)


@pytest.fixture
async def empty_database_url(databases: Databases) -> AsyncIterator[str]:
    """A fresh database without any table."""
    url = await databases.empty()
    yield url
    await databases.drop(url)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """The fresh, migrated database, open."""
    async with opened(database_url) as database:
        yield database


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """A server that this test alone may stop, kill and restart."""
    with postgres_server() as server:
        yield server
