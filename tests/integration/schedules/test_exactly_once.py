"""Each occurrence fires exactly once: over years, across restarts, two instances, kills and clocks set wrong."""

import asyncio
import random
import signal
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controller.decide.slots import slots_after
from controller.domain.schedules import Action, Definition
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.schedules import ScheduleStore
from tests.integration.schedules.clockwork import (
    START,
    AnyTime,
    Clockwork,
    a_file,
    fired,
    rows,
    statuses,
)
from tests.integration.schedules.lives import a_schedule
from tests.postgres import opened

PAUSE = {"pool": "rv1", "for": "1h"}
DAILY = a_schedule("daily", "cron", "30 2 * * *", "pause", given=PAUSE, timezone="Europe/Berlin")
SUNDAYS = a_schedule("sundays", "cron", "30 2 * * 0", "pause", given=PAUSE, timezone="Europe/Berlin")
YEARS = 5
ROOT = Path(__file__).resolve().parents[3]


def slots(schedule: dict[str, object], begin: datetime, end: datetime) -> list[datetime]:
    """The times that a cron entry should have come at."""
    definition = Definition(
        str(schedule["name"]),
        "cron",
        str(schedule["spec"]),
        Action.PAUSE,
        timezone=str(schedule.get("timezone", "UTC")),
    )
    found = []
    for slot in slots_after(definition, begin):
        if slot > end:
            break
        found.append(slot)
    return found


async def test_five_years_of_sunday_nights_fire_once_each_across_restarts(database: Database) -> None:
    clock, rng = AnyTime(), random.Random(4)
    file = a_file([SUNDAYS])
    process = Clockwork(database, file, clock)
    await process.run()
    end = START + timedelta(days=365 * YEARS)
    restarts = 0
    while (due := await process.step.next_due()) is not None and due <= end:
        clock.at = due + timedelta(seconds=rng.choice([0, 0, 1, 15]))
        if rng.random() < 0.1:
            await process.end()
            process, restarts = Clockwork(database, file, clock, seed=restarts), restarts + 1
        await process.run()
    await process.end()
    expected = slots(SUNDAYS, START, end)
    assert await fired(database, "sundays") == expected
    assert await statuses(database, "sundays") == {"completed": len(expected)}
    assert restarts > 5
    assert len(expected) >= 260


async def test_two_instances_that_both_believe_to_lead_fire_once(database_url: str) -> None:
    """Worse than can be: the epoch would keep one of them out."""
    schedules = [
        a_schedule(f"each-{number}", "cron", "*/30 * * * *", "pause", given=PAUSE) for number in range(4)
    ]
    async with opened(database_url) as one, opened(database_url) as other:
        clock, file = AnyTime(), a_file(schedules)
        pair = [Clockwork(one, file, clock, 1), Clockwork(other, file, clock, 2)]
        await pair[0].run(epoch=0)
        for _ in range(24):
            clock.at += timedelta(minutes=30)
            await asyncio.gather(*(process.run(epoch=0) for process in pair))
            await pair[0].run(epoch=0)  # what SKIP LOCKED passed over
        for schedule in schedules:
            times = await fired(one, str(schedule["name"]))
            assert times == [START + timedelta(minutes=30 * n) for n in range(1, 25)]


async def test_a_process_killed_between_claim_and_commit_has_not_fired(
    database_url: str, database: Database
) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([DAILY]), clock)
    await process.run(epoch=0)
    for night in range(3):
        (due,) = await rows(database, "SELECT next_run_at FROM schedules")
        clock.at = due["next_run_at"]
        command = [sys.executable, "-m", "tests.integration.schedules.dying", database_url]
        child = await asyncio.create_subprocess_exec(
            *command, clock.at.isoformat(), stdout=asyncio.subprocess.PIPE, cwd=ROOT
        )
        assert child.stdout is not None
        async with asyncio.timeout(60):
            assert (await child.stdout.readline()).strip() == b"claimed"
        await process.run(epoch=0)  # while it is held, SKIP LOCKED passes it over
        assert len(await fired(database, "daily")) == night
        child.send_signal(signal.SIGKILL)
        await child.wait()
        async with asyncio.timeout(60):
            while (
                len(await fired(database, "daily")) == night
            ):  # the server has to notice the broken connection
                await process.run(epoch=0)
        assert await fired(database, "daily") == slots(DAILY, START, clock.at)
        assert (await statuses(database, "daily")) == {"completed": night + 1}


async def test_a_connection_cut_in_the_middle_of_firing_has_not_fired(
    database: Database, database_url: str
) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([DAILY]), clock)
    await process.run(epoch=0)
    clock.at = slots(DAILY, START, START + timedelta(days=2))[0]
    async with opened(database_url) as other:
        with pytest.raises(Exception, match="terminat"):  # noqa: PT012
            async with ScheduleStore(other).claimed(0, clock.at) as claimed:
                assert claimed is not None
                await rows(
                    database,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE state = 'idle in transaction' AND datname = current_database()",
                )
                await claimed.pressure()
    assert await fired(database, "daily") == []
    await process.run(epoch=0)
    assert len(await fired(database, "daily")) == 1


@pytest.mark.parametrize("seed", range(3))
async def test_a_clock_that_is_set_back_and_forth_fires_nothing_twice_and_goes_on(
    database: Database, seed: int
) -> None:
    clock, rng = AnyTime(), random.Random(seed)
    hourly = a_schedule("hourly", "cron", "0 * * * *", "pause", given=PAUSE)
    often = a_schedule("often", "interval", "10m", "pause", given=PAUSE)
    process = Clockwork(database, a_file([hourly, often]), clock)
    for _ in range(120):
        clock.at += timedelta(minutes=rng.choice([5, 15, 30, 61, 180]))
        if rng.random() < 0.1:
            clock.at += timedelta(hours=rng.choice([-48, -5, -1, 1, 30]))
        await process.run()
    for name in ("hourly", "often"):
        assert max(Counter(await fired(database, name)).values()) == 1
    clock.at -= timedelta(days=400)  # a clock that was more than a year ahead
    await process.run()
    for _ in range(6):
        clock.at += timedelta(minutes=20)
        await process.run()
    came = await rows(
        database,
        "SELECT schedule, count(*) AS times FROM occurrences WHERE due_at <= %(now)s GROUP BY schedule",
        now=clock.at,
    )
    assert {row["schedule"]: row["times"] for row in came} == {
        "hourly": 2,
        "often": 12,
    }  # every other one was missed


async def test_an_interval_fires_at_once_and_then_counts_from_its_last_firing(database: Database) -> None:
    clock = AnyTime()
    process = Clockwork(
        database, a_file([a_schedule("often", "interval", "1h", "pause", given=PAUSE)]), clock
    )
    for minutes in (0, 59, 1, 25, 35, 60, 300, 59, 1):
        clock.at += timedelta(minutes=minutes)
        await process.run()
    ran = await rows(database, "SELECT at FROM events WHERE kind = 'schedule.fired' ORDER BY id")
    offsets = [(row["at"] - START) // timedelta(minutes=1) for row in ran]
    assert offsets == [0, 60, 120, 180, 480, 540]


async def test_a_one_shot_disables_itself_and_stays_so_after_a_restart(database: Database) -> None:
    clock = AnyTime()
    file = a_file([a_schedule("once", "one_shot", "2026-01-05T10:00:00+01:00", "pause", given=PAUSE)])
    for days in (0, 3, 3, 3):
        clock.at += timedelta(days=days)
        process = Clockwork(database, file, clock)
        await process.run()
        await process.end()
    assert await fired(database, "once") == [datetime(2026, 1, 5, 9, 0, tzinfo=UTC)]
    assert await rows(database, "SELECT enabled, next_run_at FROM schedules") == [
        {"enabled": False, "next_run_at": None}
    ]


async def test_a_due_schedule_is_found_by_the_partial_index(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO schedules (name, owner, enabled, type, spec, action, next_run_at, created_at, updated_at)"
            " SELECT 's' || n, 'api', n % 100 = 0, 'cron', '* * * * *', 'prune', now() + n * interval '1 min',"
            " now(), now() FROM generate_series(1, 20000) n"
        )
        await connection.execute("ANALYZE schedules")
        text = ScheduleStore.DUE.replace("%(now)s", "now()")
        plan = await (await connection.execute(f"EXPLAIN {text}")).fetchall()
    assert "schedules_next_run" in " ".join(row["QUERY PLAN"] for row in plan)
