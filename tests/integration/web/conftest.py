"""A receiver for every test here."""

from collections.abc import AsyncIterator

import pytest

from controller.gateways.postgres.database import Database
from tests.integration.web.receiving import Sender, receiving


@pytest.fixture
async def github(database: Database) -> AsyncIterator[Sender]:
    """The sender's side of a receiver on a fresh database."""
    async with receiving(database) as sender:
        yield sender
