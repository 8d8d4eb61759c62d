"""A process that claims a due schedule, writes all that firing it means, and never commits; a test kills it.

python -m tests.integration.schedules.dying DATABASE_URL NOW
"""

import asyncio
import sys
from datetime import datetime

from controller.decide.occurrences import judge_due
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.schedules import ScheduleStore
from controller.ports import Secret
from tests.postgres import SCHEMA


async def claim_and_wait(url: str, now: datetime) -> None:
    """Say `claimed` between the writes and the commit, and stay there."""
    database = Database(Secret(url), SCHEMA, 2)
    await database.open()
    async with ScheduleStore(database).claimed(0, now) as claimed:
        assert claimed is not None
        await claimed.record(judge_due(claimed.schedule, await claimed.pressure(), now, 0.0), now)
        print("claimed", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(claim_and_wait(sys.argv[1], datetime.fromisoformat(sys.argv[2])))
