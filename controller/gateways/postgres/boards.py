"""Writing `boards`: by the leader, on change."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import datetime

from controller.domain.boards import Board
from controller.gateways.postgres.database import Database


class BoardStore:
    """What pages know of the boards."""

    def __init__(self, database: Database) -> None:
        self._database = database

    WRITE = """
    INSERT INTO boards (node, board, state, slots, free, worker, heartbeat_at, updated_at)
    VALUES (%(node)s, %(board)s, %(state)s, %(slots)s, %(free)s, %(worker)s, %(now)s, %(now)s)
    ON CONFLICT (node) DO UPDATE SET board = EXCLUDED.board, state = EXCLUDED.state, slots = EXCLUDED.slots,
        free = EXCLUDED.free, worker = EXCLUDED.worker, heartbeat_at = EXCLUDED.heartbeat_at,
        updated_at = EXCLUDED.updated_at
    """
    FORGET = "DELETE FROM boards WHERE node = ANY(%(gone)s)"
    KNOWN = "SELECT node FROM boards"

    async def write(self, boards: Sequence[Board], gone: Collection[str], epoch: int, now: datetime) -> None:
        """Keep these boards as they are now, and forget those that are gone."""
        async with self._database.leading(epoch) as connection, connection.cursor() as cursor:
            await cursor.executemany(self.WRITE, [{**asdict(board), "now": now} for board in boards])
            if gone:
                await cursor.execute(self.FORGET, {"gone": list(gone)})

    async def known(self) -> frozenset[str]:
        """The nodes that have a row."""
        return frozenset(row["node"] for row in await self._database.fetch(self.KNOWN))
