"""Each occurrence fires exactly once: over years, across restarts, two instances, kills and clocks set wrong."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

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
from tests.unit.decide.schedule_builders import NIGHTS

PAUSE = {"pool": "rv1", "for": "1h"}
DAILY = a_schedule("daily", "cron", "30 2 * * *", "pause", given=PAUSE, timezone="Europe/Berlin")
YEARS = 4
END = START.replace(year=START.year + YEARS)
KILLS = 4
ROOT = Path(__file__).resolve().parents[3]


@asynccontextmanager
async def claimed_elsewhere(database_url: str, now: datetime) -> AsyncIterator[None]:
    """Another process has claimed what is due and written that it fired; it is killed before it commits."""
    command = [sys.executable, "-m", "tests.integration.schedules.dying", database_url, now.isoformat()]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    assert child.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert (await child.stdout.readline()).strip() == b"claimed"
        yield
    finally:
        child.kill()
        await child.wait()


async def caught_up(process: Clockwork) -> None:
    """Iterate until nothing is due any more: the server has to notice that a process is gone."""
    async with asyncio.timeout(60):
        await process.run(epoch=0)
        while (due := await process.step.next_due()) is not None and due <= process.clock.at:
            await process.run(epoch=0)


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


def changing_nights() -> dict[str, dict[str, Any]]:
    """Schedules in five zones, at times that the nights of their months leave out or have twice."""
    found = {}
    for zone, spring, autumn, missing, doubled in NIGHTS:
        for season, day, clock in (("spring", spring, missing), ("autumn", autumn, doubled)):
            name = f"{zone.rpartition('/')[2].lower()}-{season}"
            hour, minute = map(int, clock.split(":"))
            spec = f"{minute} {hour} * {date.fromisoformat(day).month} 0,6"
            found[name] = a_schedule(name, "cron", spec, "pause", given=PAUSE, timezone=zone)
    return found


def weekends(month: int) -> list[date]:
    """The days of these years' month that are a Saturday or a Sunday."""
    days = (START.date() + timedelta(days=n) for n in range((END - START).days))
    return [day for day in days if day.month == month and day.isoweekday() > 5]


async def test_years_of_changing_nights_in_five_zones_fire_once_each_whatever_happens(
    database_url: str, database: Database
) -> None:
    """Restarts, two instances at once, a process killed between claim and commit, and a clock that is set back."""
    clock, rng, schedules = AnyTime(), random.Random(4), changing_nights()
    file = a_file(list(schedules.values()))
    happened = Counter[str]()
    async with opened(database_url) as elsewhere:
        process, other = Clockwork(database, file, clock), Clockwork(elsewhere, file, clock)
        await process.run(epoch=0)
        while (due := await process.step.next_due()) is not None and due <= END:
            clock.at = due + timedelta(seconds=rng.choice([0, 0, 1, 15]))
            event = rng.choice(["nothing"] * 4 + ["restart", "pair", "clock", "kill"])
            if event == "kill" and happened["kill"] >= KILLS:
                event = "pair"
            happened[event] += 1
            match event:
                case "restart":
                    process = Clockwork(database, file, clock, seed=happened["restart"])
                case "pair":
                    await asyncio.gather(process.run(epoch=0), other.run(epoch=0))
                case "clock":
                    await process.run(epoch=0)
                    right, clock.at = clock.at, clock.at - timedelta(hours=rng.choice([1, 5, 30]))
                    await Clockwork(database, file, clock).run(epoch=0)
                    clock.at = right
                case "kill":
                    async with claimed_elsewhere(database_url, clock.at):
                        await process.run(epoch=0)
            await caught_up(process)
    for name, schedule in schedules.items():
        local = [due.astimezone(ZoneInfo(schedule["timezone"])) for due in await fired(database, name)]
        minute, hour, _, month, _ = schedule["spec"].split()
        assert [at.date() for at in local] == weekends(int(month)), name
        assert await statuses(database, name) == {"completed": len(local)}
        moved = [at for at in local if (at.hour, at.minute) != (int(hour), int(minute))]
        twice = [at for at in local if at.replace(fold=1).utcoffset() != at.replace(fold=0).utcoffset()]
        assert (len(moved), len(twice) >= YEARS) == ((YEARS, False) if "spring" in name else (0, True)), name
    assert happened["kill"] == KILLS
    assert min(happened.values()) >= KILLS


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
        async with claimed_elsewhere(database_url, clock.at):
            await process.run(epoch=0)  # while it is held, SKIP LOCKED passes it over
            assert len(await fired(database, "daily")) == night
        await caught_up(process)
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
    assert {row["schedule"]: row["times"] for row in came} == {"hourly": 2, "often": 6}


@pytest.mark.parametrize("policy", [{}, {"catchUp": "run_all_capped", "catchUpCap": 2}])
async def test_what_a_clock_that_was_ahead_for_a_moment_called_missed_comes_when_its_time_does(
    database: Database, policy: dict[str, Any]
) -> None:
    clock = AnyTime(START + timedelta(minutes=30))
    hourly = a_schedule("hourly", "cron", "0 * * * *", "pause", given=PAUSE, **policy)
    process = Clockwork(database, a_file([hourly]), clock)
    await process.run()
    right, clock.at = clock.at, clock.at + timedelta(hours=10)
    await process.run()
    early = await fired(database, "hourly")
    clock.at = right
    for _ in range(14 * 6):
        clock.at += timedelta(minutes=10)
        await process.run()
    times = await fired(database, "hourly")
    assert sorted(times) == [START + timedelta(hours=hour) for hour in range(1, 15)]
    assert len(early) == policy.get("catchUpCap", 0)
    assert await statuses(database, "hourly") == {"completed": 14}


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
    assert await statuses(database, "often") == {"completed": 6}  # five hours without it: nothing was missed


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
