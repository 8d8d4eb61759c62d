"""The rows in `holds` of pools that are in their quiet hours."""

from collections.abc import Sequence
from datetime import datetime

from controller.domain.holds import Hold
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.events import note_event


class QuietPoolStore:
    """Written by the leader when quiet hours begin or end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    KNOWN = "SELECT target, until FROM holds WHERE scope = 'pool' AND why = 'quiet_hours'"
    SET = """
    INSERT INTO holds (scope, target, why, until, who, note, created_at)
    VALUES ('pool', %(target)s, 'quiet_hours', %(until)s, %(who)s, %(note)s, %(now)s)
    ON CONFLICT (scope, target, why) DO UPDATE SET until = EXCLUDED.until, note = EXCLUDED.note
    """
    LIFT = "DELETE FROM holds WHERE scope = 'pool' AND target = %(target)s AND why = 'quiet_hours'"

    async def keep(self, holds: Sequence[Hold], epoch: int, now: datetime) -> None:
        """Make the quiet hours' holds exactly these; what begins and ends leaves an event."""
        async with self._database.leading(epoch) as connection:
            rows = await (await connection.execute(self.KNOWN)).fetchall()
            known = {row["target"]: row["until"] for row in rows}
            for hold in holds:
                if known.get(hold.target) == hold.until:
                    continue
                values = {"target": hold.target, "until": hold.until, "who": hold.who, "note": hold.note}
                await connection.execute(self.SET, values | {"now": now})
                await note_event(connection, "quiet_hours.began", now, detail=hold.detail)
            for target in known.keys() - {hold.target for hold in holds}:
                await connection.execute(self.LIFT, {"target": target})
                await note_event(connection, "quiet_hours.ended", now, detail={"target": target})
