"""Outages, quiet hours, the file's ownership and the actions on holds, on real PostgreSQL."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.domain.constants import OCCURRENCE_LEASE
from controller.domain.controls import By
from controller.domain.schedules import Occurrence
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.occurrences import OccurrenceStore
from controller.gateways.postgres.retention import RetentionStore
from controller.gateways.postgres.schedule_desk import ScheduleDesk
from controller.reconcile.schedules import AT_ONCE
from tests.integration.schedules.clockwork import START, AnyTime, Clockwork, a_file, fired, rows, statuses
from tests.integration.schedules.lives import a_schedule, go_to, turn
from tests.systems import a_pool, a_system

PAUSE = {"pool": "rv1", "for": "1h"}
HOURLY = a_schedule("hourly", "cron", "0 * * * *", "pause", given=PAUSE)


async def after_outage(database: Database, outage: timedelta, **changes: Any) -> Clockwork:
    """A schedule that is planned, and then nobody looks for so long."""
    clock = AnyTime(START + timedelta(minutes=30))
    process = Clockwork(database, a_file([{**HOURLY, **changes}]), clock)
    await process.run()
    clock.at = START + timedelta(hours=1) + outage
    await process.run()
    return process


ONCE = {"catchUp": "run_once"}
THREE = {"catchUp": "run_all_capped", "catchUpCap": 3}


@pytest.mark.parametrize(
    ("outage", "skip", "once", "three"),
    [
        (timedelta(seconds=20), {"completed": 1}, {"completed": 1}, {"completed": 1}),
        (timedelta(minutes=20), {"missed": 1}, {"completed": 1}, {"completed": 1}),
        (
            timedelta(hours=9, minutes=5),
            {"missed": 10},
            {"completed": 1},
            {"missed": 7, "completed": 3},
        ),
        (
            timedelta(days=3, minutes=5),
            {"missed": 73},
            {"completed": 1},
            {"missed": 70, "completed": 3},
        ),
        (
            timedelta(days=60, minutes=5),
            {"missed": 100},
            {"completed": 1},
            {"missed": 100, "completed": 3},
        ),
        (
            timedelta(days=200, minutes=5),
            {"missed": 100},
            {"completed": 1},
            {"missed": 100, "completed": 3},
        ),
    ],
)
@pytest.mark.parametrize(("policy", "case"), [({}, 0), (ONCE, 1), (THREE, 2)], ids=["skip", "once", "three"])
async def test_what_an_outage_leaves_behind(
    database: Database,
    outage: timedelta,
    skip: dict[str, int],
    once: dict[str, int],
    three: dict[str, int],
    policy: dict[str, Any],
    case: int,
) -> None:
    await after_outage(database, outage, **policy)
    assert await statuses(database, "hourly") == (skip, once, three)[case]


async def test_missed_times_leave_an_event_each_up_to_a_hundred_and_then_one_with_the_count(
    database: Database,
) -> None:
    process = await after_outage(database, timedelta(days=10, minutes=5))
    events = await rows(
        database,
        "SELECT detail FROM events WHERE kind = 'schedule.missed' AND source = 'schedule' ORDER BY id",
    )
    assert len(events) == 101
    assert events[0]["detail"] == {"schedule": "hourly", "due": (START + timedelta(hours=1)).isoformat()}
    assert events[-1]["detail"] == {"schedule": "hourly", "slots": 141, "at_least": False}
    metric = process.metrics.schedule_runs_total.labels("missed")
    assert metric._value.get() == 100


async def test_catching_up_once_says_for_how_many_times_it_stands(database: Database) -> None:
    await after_outage(database, timedelta(hours=9, minutes=5), catchUp="run_once")
    (event,) = await rows(database, "SELECT detail FROM events WHERE kind = 'schedule.caught_up'")
    assert event["detail"]["slots"] == 10
    assert await fired(database, "hourly") == [START + timedelta(hours=10)]


async def test_quiet_hours_across_midnight_suppress_with_an_event(database: Database) -> None:
    clock = AnyTime(START + timedelta(hours=20, minutes=30))
    quiet = {"from": "22:00", "to": "06:00"}
    process = Clockwork(database, a_file([{**HOURLY, "quietHours": quiet}]), clock)
    await process.run()
    for _ in range(14):
        clock.at += timedelta(minutes=30)
        await process.run()
        clock.at += timedelta(minutes=30)
        await process.run()
    hours = [(due - START) // timedelta(hours=1) for due in await fired(database, "hourly")]
    assert hours == [21, 30, 31, 32, 33, 34]
    skipped = await rows(database, "SELECT outcome FROM events WHERE kind = 'schedule.skipped'")
    assert [row["outcome"] for row in skipped] == ["quiet_hours"] * 8
    assert await statuses(database, "hourly") == {"completed": 6, "skipped": 8}


async def test_the_file_owns_its_schedules(database: Database) -> None:
    clock = AnyTime()
    other = a_schedule("other", "cron", "0 5 * * *", "pause", given=PAUSE)

    async def restarted(*schedules: dict[str, Any]) -> dict[str, tuple[bool, int | None]]:
        process = Clockwork(database, a_file(schedules), clock)
        await process.run()
        await process.end()
        found = await rows(database, "SELECT name, enabled, next_run_at FROM schedules ORDER BY name")
        return {
            row["name"]: (
                row["enabled"],
                (row["next_run_at"] - START) // timedelta(hours=1) if row["next_run_at"] else None,
            )
            for row in found
        }

    assert await restarted(HOURLY, other) == {"hourly": (True, 1), "other": (True, 5)}
    clock.at += timedelta(minutes=10)
    assert await restarted(HOURLY) == {"hourly": (True, 1), "other": (False, None)}
    changed = {**other, "spec": "0 7 * * *"}
    assert await restarted(HOURLY, changed) == {"hourly": (True, 1), "other": (True, 7)}
    assert await restarted({**HOURLY, "enabled": False}, changed) == {
        "hourly": (False, 1),
        "other": (True, 7),
    }
    kinds = await rows(database, "SELECT kind FROM events WHERE detail->>'schedule' = 'other' ORDER BY id")
    assert [row["kind"] for row in kinds] == ["schedule.created", "schedule.removed", "schedule.changed"]


async def test_a_one_shot_that_the_file_gives_another_time_comes_again(database: Database) -> None:
    clock = AnyTime()
    once = a_schedule("once", "one_shot", (START + timedelta(hours=1)).isoformat(), "pause", given=PAUSE)

    async def restarted(schedule: dict[str, Any]) -> None:
        process = Clockwork(database, a_file([schedule]), clock)
        await process.run()
        await process.end()

    await restarted(once)
    clock.at += timedelta(hours=1)
    await restarted(once)
    assert len(await fired(database, "once")) == 1
    again = {**once, "spec": (START + timedelta(hours=3)).isoformat()}
    await restarted(again)
    clock.at += timedelta(hours=2)
    await restarted(again)
    assert len(await fired(database, "once")) == 2


async def test_a_one_shot_that_has_fired_does_not_come_again_when_it_returns_to_the_file(
    database: Database,
) -> None:
    """Settings that are rolled back and forth; one that has yet to come comes."""
    clock = AnyTime()
    early, late = (
        a_schedule(name, "one_shot", (START + timedelta(hours=hours)).isoformat(), "pause", given=PAUSE)
        for name, hours in (("early", 1), ("late", 3))
    )

    async def restarted(hours: int, *schedules: dict[str, Any]) -> None:
        clock.at = START + timedelta(hours=hours)
        process = Clockwork(database, a_file(schedules), clock)
        await process.run()
        await process.end()

    await restarted(0, early, late)
    assert await ScheduleDesk(database).run_now("late", By("ada"), clock.at)  # by hand, before its time
    await restarted(1, early, late)
    await restarted(1)
    await restarted(2, early, late)
    await restarted(3, early, late)
    assert await fired(database, "early") == [START + timedelta(hours=1)]
    assert await fired(database, "late") == [START, START + timedelta(hours=3)]
    assert await rows(database, "SELECT DISTINCT enabled, next_run_at FROM schedules") == [
        {"enabled": False, "next_run_at": None}
    ]


async def test_a_schedule_pauses_and_resumes_what_schedules_paused_and_nothing_else(
    database: Database,
) -> None:
    clock = AnyTime()
    schedules = [
        a_schedule("stop-pool", "interval", "1d", "pause", given={"pool": "rv1"}),
        a_schedule("stop-acme", "interval", "1d", "pause", given={"entity": "Acme"}),
        a_schedule("stop-board", "interval", "1d", "drain", given={"board": "node-1"}),
        a_schedule("go-pool", "cron", "0 1 * * *", "resume", given={"pool": "rv1"}),
        a_schedule("go-acme", "cron", "0 1 * * *", "resume", given={"entity": "acme"}),
    ]
    await rows(
        database,
        "INSERT INTO holds (scope, target, why, who, created_at)"
        " VALUES ('entity', 'acme', 'pause', 'Anna', %(now)s) RETURNING 1",
        now=START,
    )
    process = Clockwork(database, a_file(schedules), clock)
    await process.run()
    query = "SELECT scope, target, why, who FROM holds ORDER BY scope, target"
    held = {(row["scope"], row["target"], row["why"]): row["who"] for row in await rows(database, query)}
    assert held == {
        ("board", "node-1", "drain"): "schedule stop-board",
        ("entity", "acme", "pause"): "Anna",
        ("pool", "rv1", "pause"): "schedule stop-pool",
    }
    clock.at += timedelta(hours=1)
    await process.run()
    left = {(row["target"], row["who"]) for row in await rows(database, query)}
    assert left == {("node-1", "schedule stop-board"), ("acme", "Anna")}


async def test_a_spec_that_cannot_be_read_is_set_aside_and_does_not_keep_the_others_back(
    database: Database,
) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([HOURLY]), clock)
    await process.run()
    await rows(
        database,
        "INSERT INTO schedules (name, owner, enabled, type, spec, action, next_due_at, next_run_at, created_at,"
        " updated_at) VALUES ('bad', 'api', true, 'cron', 'nonsense', 'prune', %(now)s, %(now)s, %(now)s, %(now)s),"
        " ('new', 'api', true, 'moon', 'full', 'prune', %(now)s, %(now)s, %(now)s, %(now)s) RETURNING 1",
        now=START,
    )
    clock.at = START + timedelta(hours=1)
    await process.run()
    assert len(await fired(database, "hourly")) == 1
    bad, hourly, new = await rows(
        database, "SELECT name, next_run_at, last_error FROM schedules ORDER BY name"
    )
    assert (bad["next_run_at"], "five fields" in bad["last_error"]) == (None, True)
    assert new["next_run_at"] is None
    assert hourly["next_run_at"] == START + timedelta(hours=2)
    (skipped,) = await rows(database, "SELECT outcome FROM events WHERE kind = 'schedule.skipped'")
    assert skipped["outcome"] == "unsupported_type"


async def test_what_only_another_program_can_read_is_set_aside_before_its_time_too(
    database: Database,
) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([HOURLY]), clock)
    await rows(database, "ALTER TABLE schedules DROP CONSTRAINT schedules_action_check")
    await rows(
        database,
        "INSERT INTO schedules (name, owner, enabled, type, spec, timezone, action, next_due_at, next_run_at,"
        " created_at, updated_at) VALUES"
        " ('gone', 'api', true, 'cron', '0 0 * * *', 'Gone/Zone', 'prune', %(later)s, %(later)s, %(now)s, %(now)s),"
        " ('newer', 'api', true, 'cron', '0 0 * * *', 'UTC', 'fly', %(later)s, %(later)s, %(now)s, %(now)s),"
        " ('due', 'api', true, 'cron', '0 0 * * *', 'UTC', 'fly', %(now)s, %(now)s, %(now)s, %(now)s) RETURNING 1",
        now=START,
        later=START + timedelta(days=1),
    )
    await process.run()
    clock.at = START + timedelta(hours=1)
    await process.run()
    assert len(await fired(database, "hourly")) == 1
    aside = await rows(
        database,
        "SELECT name, last_error FROM schedules WHERE next_run_at IS NULL AND last_error IS NOT NULL ORDER BY name",
    )
    assert [row["name"] for row in aside] == ["due", "gone", "newer"]
    assert "Gone/Zone" in aside[1]["last_error"]
    assert "fly" in aside[0]["last_error"]


async def test_what_a_clock_that_was_ahead_held_ends_as_if_it_had_begun_now(database: Database) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([{**HOURLY, "spec": "0 8 * * *"}]), clock)
    await process.run()
    right, clock.at = clock.at, clock.at + timedelta(days=20, hours=8)
    await process.run()
    clock.at = right
    await process.run()
    assert await rows(database, "SELECT until FROM holds") == [{"until": right + timedelta(hours=1)}]


async def test_what_a_clock_that_was_ahead_put_off_and_leased_is_done_now(database: Database) -> None:
    clock = AnyTime()
    ahead = START + timedelta(days=20)
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, arguments, status, leased_until, retry_after, warm_until,"
        " created_at) VALUES"
        " ('leased', %(now)s, 'prune', '{}', 'running', %(ahead)s, NULL, NULL, %(ahead)s),"
        " ('put-off', %(now)s, 'prune', '{}', 'pending', NULL, %(ahead)s, NULL, %(ahead)s),"
        " ('future', %(now)s, 'prune', '{}', 'pending', NULL, NULL, NULL, %(ahead)s),"
        """ ('warm', %(now)s, 'warm', '{"for": 3600}', 'running', NULL, NULL, %(ahead)s, %(ahead)s) RETURNING 1""",
        now=START,
        ahead=ahead,
    )
    await Clockwork(database, a_file([]), clock).run()
    found = await rows(database, "SELECT schedule, status, warm_until FROM occurrences ORDER BY schedule")
    assert {row["schedule"]: row["status"] for row in found} == {
        "leased": "completed",
        "put-off": "completed",
        "future": "completed",
        "warm": "running",
    }
    assert found[-1]["warm_until"] == START + timedelta(hours=1)


async def test_work_that_ends_its_process_each_time_is_given_up(database: Database) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([a_schedule("clean", "interval", "1d", "prune")]), clock)
    await process.run()
    await rows(
        database,
        "UPDATE occurrences SET status = 'running', attempts = max_attempts, leased_until = %(now)s RETURNING 1",
        now=START,
    )
    store = OccurrenceStore(database, "test")
    epoch = (await rows(database, "SELECT epoch FROM leader"))[0]["epoch"]
    assert await store.reclaim((), epoch, clock.at) == ["clean"]
    again = await store.claim(epoch, clock.at)
    assert again is not None
    clock.at += OCCURRENCE_LEASE
    assert await store.reclaim((again.id,), epoch, clock.at) == []  # this process has it in hand
    assert await store.reclaim((), epoch, clock.at) == ["clean"]
    assert await statuses(database, "clean") == {"failed": 1}
    (schedule,) = await rows(database, "SELECT last_error FROM schedules")
    assert "retry it by hand" in schedule["last_error"]


async def test_whoever_lost_its_lease_to_another_writes_nothing_any_more(database: Database) -> None:
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, arguments, status, created_at)"
        " VALUES ('nightly', %(now)s, 'dispatch', '{}', 'pending', %(now)s)",
        now=START,
    )
    store, later = OccurrenceStore(database, "test"), START + OCCURRENCE_LEASE
    first = await store.claim(0, START)
    assert first is not None
    await store.reclaim((), 0, later)
    second = await store.claim(0, later)
    assert second is not None
    assert not await store.note_sent(first, (), 0, later)
    assert not await store.postpone(first, later, "late", counts=True, epoch=0, now=later)
    assert not await store.fail(first, "late", 0, later)
    assert not await store.complete(first, "late", None, 0, later)
    assert await store.complete(second, "done", None, 0, later)


async def test_prune_runs_retention_and_a_full_queue_refuses_more(database: Database) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([a_schedule("clean", "interval", "1h", "prune")]), clock)
    await process.run()
    assert await statuses(database, "clean") == {"completed": 1}
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, status, retry_after, created_at)"
        " SELECT 'x' || n, %(now)s, 'dispatch', 'pending', %(later)s, %(now)s FROM generate_series(1, 200) n"
        " RETURNING 1",
        now=START,
        later=START + timedelta(hours=2),
    )
    clock.at += timedelta(hours=1)
    await process.run()
    (last,) = await rows(
        database,
        "SELECT status, reason FROM occurrences WHERE schedule = 'clean' ORDER BY due_at DESC LIMIT 1",
    )
    assert last == {"status": "skipped", "reason": "at_capacity"}


async def test_a_full_queue_keeps_no_pause_back(database: Database) -> None:
    """What is done in the transaction that fires it waits for nobody, also by hand."""
    clock = AnyTime()
    nights = a_schedule("nights", "cron", "@hourly", "pause", given={"pool": "rv1", "for": "30m"})
    process = Clockwork(database, a_file([nights]), clock)
    await process.run()
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, status, retry_after, created_at)"
        " SELECT 'x' || n, %(now)s, 'dispatch', 'pending', %(later)s, %(now)s FROM generate_series(1, 200) n"
        " RETURNING 1",
        now=START,
        later=START + timedelta(hours=2),
    )
    clock.at += timedelta(hours=1)
    await process.run()
    assert await fired(database, "nights") == [START + timedelta(hours=1)]
    clock.at += timedelta(minutes=1)
    ran = await ScheduleDesk(database).run_now("nights", By("ada"), clock.at)
    assert isinstance(ran, Occurrence)
    (hold,) = await rows(database, "SELECT target FROM holds")
    assert hold == {"target": "rv1"}


async def test_a_one_shot_that_finds_no_room_comes_when_there_is_some(database: Database) -> None:
    clock = AnyTime()
    once = a_schedule("once", "one_shot", (START + timedelta(hours=1)).isoformat(), "prune")
    process = Clockwork(database, a_file([once]), clock)
    await process.run()
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, status, retry_after, created_at)"
        " SELECT 'x' || n, %(now)s, 'dispatch', 'pending', %(later)s, %(now)s FROM generate_series(1, 200) n"
        " RETURNING 1",
        now=START,
        later=START + timedelta(hours=2),
    )
    clock.at += timedelta(hours=1)
    await process.run()
    assert await statuses(database, "once") == {}
    (event,) = await rows(database, "SELECT outcome FROM events WHERE kind = 'schedule.skipped'")
    assert event["outcome"] == "at_capacity"
    await rows(database, "UPDATE occurrences SET status = 'failed' RETURNING 1")
    clock.at += timedelta(minutes=4)
    await process.run()
    assert await fired(database, "once") == [START + timedelta(hours=1)]
    assert await rows(database, "SELECT enabled FROM schedules") == [{"enabled": False}]


async def test_old_occurrences_are_forgotten_but_for_the_newest_of_a_schedule(database: Database) -> None:
    clock = AnyTime()
    process = Clockwork(database, a_file([{**HOURLY, "spec": "0 0 * * *"}]), clock)
    for _ in range(5):
        await process.run()
        clock.at += timedelta(days=1)
    store = RetentionStore(database)
    epoch = (await rows(database, "SELECT epoch FROM leader"))[0]["epoch"]
    assert await store.forget_occurrences(START + timedelta(days=3), epoch) == 2
    assert await store.forget_occurrences(START + timedelta(days=30), epoch) == 1
    assert await statuses(database, "hourly") == {"completed": 1}


async def test_what_waits_behind_another_of_its_schedule_does_not_wake_the_loop(database: Database) -> None:
    later = START + timedelta(minutes=5)
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, status, retry_after, created_at) VALUES"
        " ('a', %(now)s, 'dispatch', 'pending', %(later)s, %(now)s),"
        " ('a', %(later)s, 'dispatch', 'pending', NULL, %(now)s) RETURNING 1",
        now=START,
        later=later,
    )
    assert (await OccurrenceStore(database, "test").agenda()).next == later


async def test_the_queue_gives_the_highest_priority_first_then_the_oldest_and_one_of_a_schedule(
    database: Database,
) -> None:
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, status, priority, created_at) VALUES"
        " ('a', %(now)s, 'dispatch', 'pending', 5, %(now)s),"
        " ('b', %(later)s, 'dispatch', 'pending', 10, %(now)s),"
        " ('c', %(now)s, 'dispatch', 'pending', 10, %(now)s),"
        " ('c', %(later)s, 'dispatch', 'pending', 10, %(now)s) RETURNING 1",
        now=START,
        later=START + timedelta(minutes=1),
    )
    queue = OccurrenceStore(database, "test")
    taken = [await queue.claim(0, START + timedelta(minutes=2)) for _ in range(4)]
    assert [each.schedule if each else None for each in taken] == ["c", "b", "a", None]


async def test_whoever_has_ended_one_takes_the_next(database: Database) -> None:
    await rows(
        database,
        "INSERT INTO occurrences (schedule, due_at, action, arguments, status, created_at)"
        " SELECT 's' || n, %(now)s, 'prune', '{}', 'pending', %(now)s FROM generate_series(1, 3 * %(hands)s) n",
        now=START,
        hands=AT_ONCE,
    )
    await Clockwork(database, a_file([]), AnyTime()).run()
    assert await rows(database, "SELECT DISTINCT status FROM occurrences") == [{"status": "completed"}]


async def test_a_pool_in_its_quiet_hours_starts_nothing_says_so_and_goes_on_afterwards(
    database_url: str, tmp_path: Path
) -> None:
    quiet = {"from": "13:00", "to": "07:00", "timezone": "Europe/Berlin"}  # 12:00 to 06:00 UTC in winter
    pools = [a_pool("rv1", quietHours=quiet), a_pool("rv2")]
    async with a_system(database_url, tmp_path, pools=pools, boards={"rv1": 1, "rv2": 1}) as system:
        quiet_one, other = system.queue("acme/widgets", "rv1"), system.queue("acme/widgets", "rv2")
        await system.until(system.finished(other))
        (job,) = await system.rows("SELECT skip_reason, skip_detail FROM jobs WHERE status = 'pending'")
        assert job["skip_reason"] == "held"
        assert (job["skip_detail"]["why"], job["skip_detail"]["until"]) == (
            "quiet_hours",
            "2026-03-02T06:00:00+00:00",
        )
        await go_to(system, START.replace(month=3, day=2, hour=5, minute=59))
        await turn(system)
        assert not system.finished(quiet_one)()
        await system.until(system.finished(quiet_one), seconds=30)
        assert await system.rows("SELECT 1 FROM holds") == []
