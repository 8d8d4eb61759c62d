"""Warm windows through the whole system: spare runners that real jobs use and that end with their window."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.schedules.lives import (
    a_schedule,
    go_to,
    occurrences,
    pass_time,
    started_again,
    stop,
    turn,
    warm,
)
from tests.systems import System, a_pool, a_system

EIGHT = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)  # a Monday
MORNINGS = a_schedule("mornings", "cron", "0 8 * * 1-5", "warm", given=warm(), catchUp="run_once")


def once(**more: object) -> dict[str, object]:
    """A warm window that opens at once."""
    return a_schedule("once", "one_shot", "2026-03-01T12:00:00+00:00", "warm", given=warm(**more))  # type: ignore[arg-type]


async def live(system: System) -> list[str]:
    found = await system.rows("SELECT name FROM workers WHERE status IN ('pending', 'running') ORDER BY name")
    return [row["name"] for row in found]


async def online(system: System, runners: int) -> None:
    """Step until so many runners are online and idle."""

    def are() -> bool:
        return sum(1 for each in system.github.sim.world.runners.values() if each.idle_since) >= runners

    await system.until(are)


async def test_a_controller_that_was_down_at_eight_warms_at_seven_past_once(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[MORNINGS]
    ) as system:
        await turn(system)
        await go_to(system, EIGHT - timedelta(minutes=10))
        await turn(system)
        await stop(system)
        await go_to(system, EIGHT + timedelta(minutes=7))
        assert await live(system) == []
        async with started_again(system, tmp_path):
            await turn(system)
            assert len(await live(system)) == 1
            (seen,) = await occurrences(system)
            assert (seen["due_at"], seen["status"]) == (EIGHT, "running")
            await pass_time(system, timedelta(minutes=10), 20)
            assert len(await live(system)) == 1
            assert len(await system.rows("SELECT 1 FROM workers")) == 1
            await stop(system)
        async with started_again(system, tmp_path):
            await pass_time(system, timedelta(minutes=2), 4)
            assert len(await occurrences(system)) == 1
            assert len(await system.rows("SELECT 1 FROM workers")) == 1


async def test_a_warm_runner_takes_the_next_job_without_a_new_pod_and_is_replaced(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[once()]
    ) as system:
        await turn(system)
        await online(system, 1)
        (spare,) = await live(system)
        for _ in range(60):  # five minutes idle
            await system.step()
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(ids))
        await system.step()
        (job,) = await system.rows("SELECT runner_name, skip_reason FROM jobs")
        assert job["runner_name"] == spare
        made = await system.rows("SELECT made_for FROM workers WHERE made_for IS NOT NULL")
        assert made == []
        await system.until(lambda: len(system.cluster.pods()) >= 2)
        assert len(await live(system)) == 1


async def test_spare_runners_come_after_all_pending_jobs(database_url: str, tmp_path: Path) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 3}, schedules=[once(runners=3)]
    ) as system:
        system.queue("jane/one", "rv1", jobs=3, seconds=60)
        await turn(system)
        spares = await system.rows("SELECT 1 FROM workers WHERE warm_for IS NOT NULL")
        assert spares == []
        assert len(await live(system)) == 3


async def test_an_idle_spare_runner_gives_its_board_to_a_job_that_waits_for_one(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, schedules=[once(span="6h")]
    ) as system:
        await turn(system)
        await online(system, 1)
        await pass_time(system, timedelta(minutes=30), 60)
        assert len(await system.rows("SELECT 1 FROM workers")) == 1  # not killed as idle while it is kept
        ids = system.queue("jane/one", "rv1")
        await system.until(system.finished(ids), seconds=15)
        reasons = await system.rows("SELECT failure_reason FROM workers WHERE warm_for IS NOT NULL")
        assert reasons[0] == {"failure_reason": "runner_idle"}


async def test_an_idle_spare_runner_gives_its_place_under_the_cap_to_another_job_of_its_owner(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url,
        tmp_path,
        pools=[a_pool("rv1"), a_pool("rv2")],
        boards={"rv1": 3, "rv2": 3},
        schedules=[once(runners=2, span="6h")],
        entities={"overrides": {"acme": {"maxWorkers": 2}}},
    ) as system:
        await turn(system)
        await online(system, 2)
        ids = system.queue("acme/widgets", "rv2")
        await pass_time(system, timedelta(minutes=4), 48)  # less than the time after which idle runners end
        assert system.finished(ids)()
        ended = await system.rows(
            "SELECT failure_reason FROM workers WHERE warm_for IS NOT NULL AND status = 'failed'"
        )
        assert ended == [{"failure_reason": "runner_idle"}]


async def test_a_spare_runner_leaves_the_board_of_a_job_that_backs_off(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, schedules=[MORNINGS]
    ) as system:
        system.queue("jane/one", "rv1")
        fault = {"operation": "actions/generate-runner-jitconfig-for-repo", "times": None, "status": 500}
        system.github.sim.faults.add(**fault, name="no-jit")
        for _ in range(6):
            await system.step()
        (job,) = await system.rows("SELECT skip_reason FROM jobs")
        assert job["skip_reason"] == "backing_off"
        await system.rows(
            "UPDATE schedules SET next_run_at = %(now)s, next_due_at = %(now)s RETURNING 1",
            now=system.clock.now(),
        )
        await system.step(1)
        assert [row["status"] for row in await occurrences(system)] == ["running"]
        assert await system.rows("SELECT 1 FROM workers WHERE warm_for IS NOT NULL") == []


async def test_spare_runners_obey_the_cap_of_their_entity(database_url: str, tmp_path: Path) -> None:
    limits = {"overrides": {"acme": {"maxWorkers": 2}}}
    async with a_system(
        database_url,
        tmp_path,
        pools=[a_pool("rv1")],
        boards={"rv1": 6},
        schedules=[once(runners=5)],
        entities=limits,
    ) as system:
        await pass_time(system, timedelta(minutes=2), 12)
        assert len(await live(system)) == 2


async def test_a_window_ends_and_its_idle_runners_with_it(database_url: str, tmp_path: Path) -> None:
    async with a_system(
        database_url,
        tmp_path,
        pools=[a_pool("rv1")],
        boards={"rv1": 2},
        schedules=[once(span="30m", runners=2)],
    ) as system:
        await pass_time(system, timedelta(minutes=29), 58)
        assert len(await live(system)) == 2
        await pass_time(system, timedelta(minutes=5), 20)
        assert await live(system) == []
        (seen,) = await occurrences(system)
        assert seen["status"] == "completed"


async def test_windows_that_follow_each_other_are_one_to_their_runners(
    database_url: str, tmp_path: Path
) -> None:
    hourly = a_schedule("hourly", "cron", "0 * * * *", "warm", given=warm(span="1h"))
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[hourly]
    ) as system:
        await turn(system)
        await go_to(system, EIGHT)
        await online(system, 1)
        await pass_time(system, timedelta(minutes=50), 50)
        (spare,) = await live(system)
        for hour in (9, 10, 11):
            await go_to(system, EIGHT.replace(hour=hour))
            for _ in range(
                4
            ):  # the iterations in which one window has ended and the next one has yet to open
                await system.controller.loop.turn()
            await pass_time(system, timedelta(minutes=5), 10)
            assert await live(system) == [spare]
        came = [row["status"] for row in await occurrences(system) if row["due_at"] >= EIGHT]
        assert came == ["completed"] * 3 + ["running"]
        assert len(await system.rows("SELECT 1 FROM workers")) == 1


async def test_spare_runners_that_github_removes_are_replaced_with_growing_pauses(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[once()]
    ) as system:
        system.github.sim.behaviour.remove_idle_after = timedelta(minutes=5)
        await pass_time(system, timedelta(minutes=60), 240)
        rows = await system.rows(
            "SELECT created_at, completed_at FROM workers WHERE warm_for IS NOT NULL ORDER BY created_at"
        )
        pauses = [(later["created_at"] - earlier["completed_at"]) for earlier, later in pairwise(rows)]
        assert len(pauses) >= 4
        step = timedelta(seconds=15)  # from one look to the next
        due = [timedelta(minutes=minutes) for minutes in (1, 2, *[4] * (len(pauses) - 2))]
        late = [pause - least for pause, least in zip(pauses, due, strict=True)]
        assert min(late) >= timedelta(0)
        assert max(late) <= step


@pytest.mark.parametrize("repo", ["jane/one", "jane/two"])
async def test_a_person_s_spare_runners_belong_to_a_repository(
    database_url: str, tmp_path: Path, repo: str
) -> None:
    given = {"entity": "jane", "labels": ["rv1"], "runners": 1, "for": "1h", "repo": repo}
    schedule = a_schedule("hers", "interval", "1d", "warm", given=given)
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, schedules=[schedule]
    ) as system:
        await turn(system)
        (runner,) = system.github.sim.ledger.runners()
        assert runner.repository == repo
