"""Reading `holds`."""

from collections import defaultdict

from controller.domain.holds import Hold, Holds, HoldScope, HoldWhy
from controller.gateways.postgres.database import Database


class HoldStore:
    """Pauses, drains, breakers and quiet hours."""

    def __init__(self, database: Database) -> None:
        self._database = database

    CURRENT = "SELECT scope, target, why, who, created_at, until, note, level FROM holds"

    async def current(self) -> Holds:
        """All holds."""
        found: dict[tuple[HoldScope, str], list[Hold]] = defaultdict(list)
        async with self._database.transaction() as connection:
            for row in await (await connection.execute(self.CURRENT)).fetchall():
                hold = Hold(**{**row, "scope": HoldScope(row["scope"]), "why": HoldWhy(row["why"])})
                found[(hold.scope, hold.target)].append(hold)
        return Holds({target: tuple(holds) for target, holds in found.items()})
