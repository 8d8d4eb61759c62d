"""Nightly builds that are started once and only once, whatever happens to the answer."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.domain.constants import OCCURRENCE_LEASE
from controller.domain.controls import By
from controller.gateways.postgres.schedule_desk import ScheduleDesk
from controller.simulators.github import JobSpec
from controller.simulators.github.state import Run
from tests.integration.schedules.lives import (
    a_schedule,
    go_to,
    occurrences,
    pass_time,
    started_again,
    stop,
    turn,
)
from tests.systems import System, a_pool, a_system

HALF_PAST_ONE = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)
GIVEN = {"repo": "acme/widgets", "workflow": "nightly.yml", "ref": "main", "inputs": {"suite": "full"}}
NIGHTLY = a_schedule("nightly", "cron", "30 1 * * *", "dispatch", given=GIVEN, catchUp="run_once")
DISPATCH = "actions/create-workflow-dispatch"
LISTING = "actions/list-workflow-runs-for-repo"

Night = Callable[[], AbstractAsyncContextManager[System]]


@pytest.fixture
def night(database_url: str, tmp_path: Path) -> Night:
    """A system just before half past one, with a workflow to start."""

    @asynccontextmanager
    async def begin() -> AsyncIterator[System]:
        async with a_system(
            database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[NIGHTLY]
        ) as system:
            system.github.sim.add_workflow("acme/widgets", "nightly.yml", [JobSpec(["rv1"], 60.0)])
            await turn(system)
            await go_to(system, HALF_PAST_ONE)
            yield system

    return begin


def runs(system: System) -> list[Run]:
    return [run for run in system.github.sim.world.runs.values() if run.event == "workflow_dispatch"]


def sent(system: System) -> int:
    return sum(1 for each in system.github.sim.requests if each.operation == DISPATCH)


async def only(system: System) -> dict[str, Any]:
    (seen,) = await occurrences(system)
    return seen


async def last_error(system: System) -> str | None:
    (row,) = await system.rows("SELECT last_error FROM schedules")
    error: str | None = row["last_error"]
    return error


async def test_a_nightly_build_is_started_linked_and_run(night: Night) -> None:
    async with night() as system:
        await turn(system)
        (run,) = runs(system)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], seen["due_at"]) == ("completed", run.id, HALF_PAST_ONE)
        assert seen["result"].endswith(f"/acme/widgets/actions/runs/{run.id}")
        assert run.inputs == GIVEN["inputs"]
        await system.until(system.finished([job.id for job in run.jobs]))
        await system.step()
        jobs = await system.rows(
            "SELECT j.status FROM jobs j JOIN occurrences o ON o.run_id = j.run_id WHERE o.schedule = 'nightly'"
        )
        assert jobs == [{"status": "completed"}]
        assert await last_error(system) is None


async def test_inputs_are_sent_as_text_whatever_yaml_makes_of_them(database_url: str, tmp_path: Path) -> None:
    given = {**GIVEN, "inputs": {"suite": "full", "verbose": True, "boards": 4, "share": 0.5}}
    schedule = a_schedule("nightly", "one_shot", "2026-03-01T12:00:00+00:00", "dispatch", given=given)
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, schedules=[schedule]
    ) as system:
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [JobSpec(["rv1"], 60.0)])
        await turn(system)
        (run,) = runs(system)
        assert run.inputs == {"suite": "full", "verbose": "true", "boards": "4", "share": "0.5"}


async def test_a_lost_answer_is_looked_up_before_anything_is_sent_again(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop="after")
        await turn(system)
        seen = await only(system)
        assert (seen["status"], seen["attempts"]) == ("pending", 1)
        assert seen["retry_after"] == HALF_PAST_ONE + timedelta(minutes=1)
        await pass_time(system, timedelta(minutes=2), 8)
        (run,) = runs(system)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", run.id, 1)


async def test_a_request_that_never_arrived_is_sent_again(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop="before")
        await pass_time(system, timedelta(minutes=2), 8)
        assert ((await only(system))["status"], len(runs(system)), sent(system)) == ("completed", 1, 2)


async def test_what_somebody_else_starts_in_that_minute_is_not_taken_for_ours(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop="before")
        await turn(system)
        theirs = system.github.sim.dispatch_by_hand("acme/widgets", "nightly.yml")
        await pass_time(system, timedelta(minutes=2), 8)
        (ours,) = [run for run in runs(system) if run is not theirs]
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", ours.id, 2)


async def test_ours_is_found_among_what_others_start_in_that_minute(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, hold="before", drop="after")
        await system.settle()
        await system.controller.loop.turn()
        await system.github.sim.faults.wait_held("lost")
        theirs = system.github.sim.dispatch_by_hand("acme/widgets", "nightly.yml")
        system.github.sim.faults.release("lost")
        await pass_time(system, timedelta(minutes=2), 8)
        first, ours = runs(system)
        seen = await only(system)
        assert (first, seen["status"], seen["run_id"]) == (theirs, "completed", ours.id)
        assert sent(system) == 1


async def test_a_run_of_ours_that_was_there_before_is_not_taken_for_the_new_one(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="silent", operation=DISPATCH, status=204, apply=True)
        await turn(system)
        assert "did not say which run" in (await only(system))["result"]
        await pass_time(system, timedelta(minutes=5), 5)
        await system.rows("UPDATE occurrences SET run_id = NULL RETURNING 1")  # as if it had not been found
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop="before")
        assert await ScheduleDesk(system.database).run_now("nightly", By("ada"), system.clock.now())
        await pass_time(system, timedelta(minutes=2), 8)
        old, new = runs(system)
        assert [row["run_id"] for row in await occurrences(system)] == [None, new.id]
        assert (old.id < new.id, sent(system)) == (True, 3)


@pytest.mark.parametrize(
    ("ref", "workflow"), [("main", "nightly.yml"), ("refs/heads/main", "nightly.yml"), ("main", "80000001")]
)
async def test_two_starts_of_one_workflow_are_never_unanswered_at_once(
    database_url: str, tmp_path: Path, ref: str, workflow: str
) -> None:
    """A run does not show its inputs: the one whose request was lost would take the other's run for its own."""
    given = {**GIVEN, "ref": ref, "workflow": workflow, "inputs": {"suite": "quick"}}
    quick = {**NIGHTLY, "name": "quick", "with": given}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[NIGHTLY, quick]
    ) as system:
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [JobSpec(["rv1"], 60.0)])
        await turn(system)
        await go_to(system, HALF_PAST_ONE)
        system.github.sim.faults.add(name="never", operation=DISPATCH, drop="before", times=1)
        system.github.sim.faults.add(name="unheard", operation=DISPATCH, drop="after", times=1)
        await pass_time(system, timedelta(minutes=6), 72)
        linked = {row["run_id"]: row["schedule"] for row in await occurrences(system)}
        started = {run.id: run.inputs["suite"] for run in runs(system)}
        assert {linked[run_id]: suite for run_id, suite in started.items()} == {
            "nightly": "full",
            "quick": "quick",
        }
        assert sent(system) == 3


async def test_a_server_in_trouble_is_asked_after_one_two_and_four_minutes_and_then_no_more(
    night: Night,
) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="down", operation=DISPATCH, status=502, times=None)
        await turn(system)
        waits: list[datetime] = []
        for _ in range(40):
            seen = await only(system)
            if seen["status"] == "failed":
                break
            at = seen["retry_after"]
            if not waits or waits[-1] != at:
                waits.append(at)
            await system.step(15)
        tries = [each.at for each in system.github.sim.requests if each.operation == DISPATCH]
        assert [at - HALF_PAST_ONE for at in tries] == [timedelta(minutes=m) for m in (0, 1, 3)]
        assert [at - HALF_PAST_ONE for at in waits] == [timedelta(minutes=m) for m in (1, 3, 7)]
        seen = await only(system)
        assert (seen["status"], runs(system)) == ("failed", [])
        assert "502" in seen["error"]
        assert seen["error"].endswith(
            "retry the occurrence on /schedules or with `PATCH /api/occurrences/{id}`."
        )
        assert await last_error(system) == seen["error"]


async def test_a_server_that_never_answers_is_given_up_with_what_to_do(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="gone", operation=DISPATCH, drop="before", times=None)
        await pass_time(system, timedelta(minutes=9), 36)
        seen = await only(system)
        assert (seen["status"], sent(system), runs(system)) == ("failed", 3, [])
        assert "if the Actions page of acme/widgets shows none of nightly.yml either" in seen["error"]
        assert await last_error(system) == seen["error"]


async def test_a_server_that_cannot_be_asked_at_all_is_given_up_with_what_to_do(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="gone", operation=LISTING, status=502, times=None)
        await pass_time(system, timedelta(minutes=9), 36)
        seen = await only(system)
        assert (seen["status"], sent(system)) == ("failed", 0)
        assert "Nothing was started: once GitHub answers again" in seen["error"]


@pytest.mark.parametrize(("drop", "found"), [("before", 0), ("after", 1)])
async def test_an_unanswered_start_of_a_disabled_schedule_is_looked_for_and_not_sent_again(
    night: Night, drop: str, found: int
) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop=drop, times=1)
        await turn(system)
        await ScheduleDesk(system.database).switch(
            "nightly", False, lambda definition: None, By("ada"), system.clock.now()
        )
        await pass_time(system, timedelta(minutes=9), 36)
        assert ((await only(system))["status"], len(runs(system)), sent(system)) == (
            "completed" if found else "failed",
            found,
            1,
        )


async def test_a_run_that_github_did_not_name_is_found_and_seen_by_the_flood_guard(night: Night) -> None:
    async with night() as system:
        long = JobSpec(["rv1"], timedelta(hours=25).total_seconds())
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [long])
        system.github.sim.faults.add(name="silent", operation=DISPATCH, status=204, apply=True)
        await pass_time(system, timedelta(minutes=1), 12)
        (run,) = runs(system)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", run.id, 1)
        assert seen["result"].endswith(f"/acme/widgets/actions/runs/{run.id}")
        await system.until(lambda: run.jobs[0].status == "in_progress")
        await go_to(system, HALF_PAST_ONE + timedelta(days=1))
        await turn(system)
        assert [row["reason"] for row in await occurrences(system)] == [None, "already_running"]


async def test_a_server_that_may_not_be_asked_which_run_it_starts_starts_one_all_the_same(
    night: Night,
) -> None:
    """Enterprise Server before 3.21: it was taken for a workflow that cannot be started."""
    async with night() as system:
        system.github.sim.behaviour.tells_started_run = False
        await pass_time(system, timedelta(minutes=1), 12)
        (run,) = runs(system)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", run.id, 2)
        assert run.inputs == GIVEN["inputs"]


async def test_a_run_that_github_did_not_name_and_does_not_list_is_not_started_again(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="silent", operation=DISPATCH, status=204)
        await pass_time(system, timedelta(minutes=9), 36)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", None, 1)
        assert "did not say which run" in seen["result"]


async def test_a_request_that_is_held_past_its_lease_is_not_sent_again_beside_itself(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="held", operation=DISPATCH, hold="before")
        await system.settle()
        await system.controller.loop.turn()
        await system.github.sim.faults.wait_held("held")
        await go_to(system, HALF_PAST_ONE + 3 * OCCURRENCE_LEASE)  # as a clock that is set jumps
        for _ in range(4):
            await system.controller.loop.turn()
            await system.settle()
        system.github.sim.faults.release("held")
        await pass_time(system, timedelta(minutes=2), 4)
        (run,) = runs(system)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", run.id, 1)


async def test_nothing_is_sent_whose_answer_could_come_after_the_lease(night: Night) -> None:
    """A successor would look for a run that is not there yet, and start another one."""
    async with night() as system:
        system.github.sim.faults.add(name="slow", operation=LISTING, hold="before")
        await system.settle()
        await system.controller.loop.turn()
        await system.github.sim.faults.wait_held("slow")
        await go_to(system, HALF_PAST_ONE + OCCURRENCE_LEASE - timedelta(seconds=59))
        system.github.sim.faults.release("slow")
        await system.controller.beside.idle()
        assert ((await only(system))["status"], sent(system)) == ("pending", 0)
        await pass_time(system, timedelta(minutes=1), 12)
        assert ((await only(system))["status"], sent(system)) == ("completed", 1)


async def test_a_last_answer_that_was_lost_is_still_found(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="down", operation=DISPATCH, status=502, times=2)
        system.github.sim.faults.add(name="lost", operation=DISPATCH, status=502, apply=True, times=1)
        await pass_time(system, timedelta(minutes=9), 36)
        seen = await only(system)
        assert (seen["status"], len(runs(system)), sent(system)) == ("completed", 1, 3)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            {
                "status": 403,
                "body": {
                    "message": "Resource not accessible by integration",
                    "documentation_url": "https://docs.github.com",
                },
            },
            "actions: write",
        ),
        (
            {"status": 404, "body": {"message": "Not Found", "documentation_url": "https://docs.github.com"}},
            "knows no workflow nightly.yml",
        ),
        (
            {
                "status": 422,
                "body": {
                    "message": "Workflow does not have 'workflow_dispatch' trigger",
                    "documentation_url": "https://docs.github.com",
                },
            },
            "workflow_dispatch",
        ),
    ],
    ids=["403", "404", "422"],
)
async def test_a_refusal_fails_at_once_and_says_what_to_change(
    night: Night, fault: dict[str, Any], said: str
) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="no", operation=DISPATCH, times=None, **fault)
        await pass_time(system, timedelta(minutes=3), 6)
        seen = await only(system)
        assert (seen["status"], seen["attempts"], sent(system)) == ("failed", 1, 1)
        assert said in seen["error"]
        assert said in (await last_error(system) or "")
        # Nothing was started, so nothing is looked for when it is retried by hand.
        (row,) = await system.rows("SELECT sent_at, last_sent_at, runs_before FROM occurrences")
        assert row == {"sent_at": None, "last_sent_at": None, "runs_before": []}


async def test_a_lost_answer_is_looked_up_also_after_a_refusal(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop="after", times=1)
        await turn(system)
        system.github.sim.faults.add(name="no", operation=LISTING, status=404, times=1)
        await pass_time(system, timedelta(minutes=2), 8)
        assert (await only(system))["status"] == "failed"
        (row,) = await system.rows("SELECT id FROM occurrences")
        await ScheduleDesk(system.database).retry(row["id"], By("ada"), system.clock.now())
        await pass_time(system, timedelta(minutes=1), 4)
        (run,) = runs(system)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", run.id, 1)


async def test_an_older_night_that_is_retried_beside_an_unanswered_one_waits_for_it_and_then_runs(
    night: Night,
) -> None:
    """Each would wait for the other: the older one of a schedule comes first, and an unanswered start is alone."""
    older = """
    INSERT INTO occurrences (schedule, due_at, action, arguments, status, error, created_at)
    SELECT schedule, due_at - interval '1 day', action, arguments, 'failed', 'no such repository', created_at
    FROM occurrences RETURNING id
    """
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop="after", times=1)
        await turn(system)
        (row,) = await system.rows(older)
        await ScheduleDesk(system.database).retry(row["id"], By("ada"), system.clock.now())
        await pass_time(system, timedelta(minutes=4), 16)
        assert await system.statuses("occurrences") == {"completed": 2}
        assert (len(runs(system)), sent(system)) == (2, 2)


async def test_an_unanswered_start_is_not_brought_back_beside_another_one(night: Night) -> None:
    """Either could take the run of the other for its own."""
    older = """
    INSERT INTO occurrences (schedule, due_at, action, arguments, status, error, created_at, sent_at, last_sent_at)
    SELECT schedule, due_at - interval '1 day', action, arguments, 'failed', 'never answered', created_at, sent_at,
        last_sent_at
    FROM occurrences RETURNING id
    """
    async with night() as system:
        system.github.sim.faults.add(name="lost", operation=DISPATCH, drop="after", times=1)
        await turn(system)
        (row,) = await system.rows(older)
        desk = ScheduleDesk(system.database)
        refused = await desk.retry(row["id"], By("ada"), system.clock.now())
        assert refused is not None
        assert not refused[1]
        await pass_time(system, timedelta(minutes=4), 16)
        retried = await desk.retry(row["id"], By("ada"), system.clock.now())
        assert retried is not None
        assert retried[1]


async def test_a_failed_night_is_retried_by_hand_and_then_started_once(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="no", operation=DISPATCH, times=1, status=404)
        await pass_time(system, timedelta(minutes=3), 6)
        failed = await only(system)
        assert failed["status"] == "failed"
        (row,) = await system.rows("SELECT id FROM occurrences")
        retried = await ScheduleDesk(system.database).retry(row["id"], By("ada"), system.clock.now())
        assert retried is not None
        assert retried[1]
        await pass_time(system, timedelta(minutes=1), 4)
        (run,) = runs(system)
        seen = await only(system)
        assert (seen["status"], seen["run_id"], sent(system)) == ("completed", run.id, 2)


async def test_a_night_that_is_retried_beside_the_next_one_s_build_waits_for_it(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="no", operation=DISPATCH, times=1, status=404)
        await turn(system)
        long = JobSpec(["rv1"], timedelta(hours=20).total_seconds())
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [long])
        await go_to(system, HALF_PAST_ONE + timedelta(days=1))
        await turn(system)
        (tuesday,) = runs(system)
        await system.until(lambda: tuesday.jobs[0].status == "in_progress")
        (row,) = await system.rows("SELECT id FROM occurrences WHERE status = 'failed'")
        await ScheduleDesk(system.database).retry(row["id"], By("ada"), system.clock.now())
        await pass_time(system, timedelta(minutes=5), 20)
        monday = (await occurrences(system))[0]
        assert (monday["status"], monday["error"]) == ("pending", "waits for another run")
        assert runs(system) == [tuesday]
        system.github.sim.cancel_run(tuesday.id)
        await pass_time(system, timedelta(minutes=10), 40)
        monday = (await occurrences(system))[0]
        assert (monday["status"], [run.id for run in runs(system)]) == (
            "completed",
            [tuesday.id, monday["run_id"]],
        )


async def test_without_the_permission_the_schedule_says_which_one_is_missing(night: Night) -> None:
    async with night() as system:
        installation = system.github.sim.world.accounts["acme"].installation
        installation.permissions = {**installation.permissions, "actions": "read"}
        await turn(system)
        assert "`actions: write`" in (await last_error(system) or "")


async def test_a_permission_that_is_lost_altogether_is_missed_at_the_first_question(night: Night) -> None:
    """The night before is asked for first: what is refused there will be refused again too."""
    async with night() as system:
        await turn(system)
        await system.until(lambda: all(job.status == "completed" for job in runs(system)[0].jobs))
        installation = system.github.sim.world.accounts["acme"].installation
        permissions = {name: may for name, may in installation.permissions.items() if name != "actions"}
        installation.permissions = permissions
        await go_to(system, HALF_PAST_ONE + timedelta(days=1))
        await turn(system)
        seen = (await occurrences(system))[-1]
        assert (seen["status"], seen["attempts"], sent(system)) == ("failed", 1, 1)
        assert "`actions: write`" in seen["error"]
        assert await last_error(system) == seen["error"]


async def test_a_suspended_app_is_named_as_what_is_in_the_way(night: Night) -> None:
    async with night() as system:
        system.github.sim.suspend("acme")
        await pass_time(system, timedelta(minutes=1), 2)
        seen = await only(system)
        assert (seen["status"], seen["attempts"], sent(system)) == ("failed", 1, 0)
        assert "The GitHub App is suspended for the owner of acme/widgets" in seen["error"]
        system.github.sim.unsuspend("acme")
        (row,) = await system.rows("SELECT id FROM occurrences")
        await ScheduleDesk(system.database).retry(row["id"], By("ada"), system.clock.now())
        await pass_time(system, timedelta(minutes=1), 2)
        assert ((await only(system))["status"], sent(system)) == ("completed", 1)


async def test_a_token_that_is_refused_for_a_while_is_no_missing_permission(night: Night) -> None:
    async with night() as system:
        system.github.sim.faults.add(
            name="key", operation="apps/create-installation-access-token", status=401, times=None
        )
        system.github.sim.revoke_tokens("acme")
        await turn(system)
        seen = await only(system)
        assert (seen["status"], seen["attempts"], sent(system)) == ("pending", 1, 0)
        system.github.sim.faults.remove("key")
        await pass_time(system, timedelta(minutes=2), 4)
        assert ((await only(system))["status"], sent(system)) == ("completed", 1)


async def test_a_repository_without_our_app_is_named(database_url: str, tmp_path: Path) -> None:
    given = {**GIVEN, "repo": "strangers/things"}
    schedule = a_schedule("nightly", "one_shot", "2026-03-01T12:00:00+00:00", "dispatch", given=given)
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 1}, schedules=[schedule]
    ) as system:
        await turn(system)
        assert "No GitHub App of ours is installed for strangers/things" in (await last_error(system) or "")


async def test_the_next_night_is_skipped_while_the_last_run_is_under_way(night: Night) -> None:
    async with night() as system:
        long = JobSpec(["rv1"], timedelta(hours=25).total_seconds())
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [long])
        await turn(system)
        await system.until(lambda: runs(system)[0].jobs[0].status == "in_progress")
        await go_to(system, HALF_PAST_ONE + timedelta(days=1))
        await turn(system)
        first, second = await occurrences(system)
        assert (first["status"], second["status"]) == ("completed", "skipped")
        assert second["reason"] == "already_running"
        await go_to(system, HALF_PAST_ONE + timedelta(days=2))
        await turn(system)
        assert [row["status"] for row in await occurrences(system)] == ["completed", "skipped", "completed"]
        assert len(runs(system)) == 2


async def test_a_night_is_skipped_while_any_earlier_run_is_under_way(night: Night) -> None:
    newer = """
    INSERT INTO occurrences (schedule, due_at, action, arguments, status, run_id, run_ended_at, created_at)
    SELECT schedule, due_at + interval '1 hour', action, arguments, 'completed', 999, created_at, created_at
    FROM occurrences RETURNING 1
    """
    async with night() as system:
        long = JobSpec(["rv1"], timedelta(hours=25).total_seconds())
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [long])
        await turn(system)
        await system.until(lambda: runs(system)[0].jobs[0].status == "in_progress")
        await system.rows(newer)
        await go_to(system, HALF_PAST_ONE + timedelta(days=1))
        await turn(system)
        assert (await occurrences(system))[-1]["reason"] == "already_running"


async def test_a_request_whose_lease_runs_out_is_taken_up_by_the_successor_which_finds_the_run(
    night: Night, tmp_path: Path
) -> None:
    async with night() as system:
        system.github.sim.faults.add(name="held", operation=DISPATCH, hold="after")
        await system.settle()
        await system.controller.loop.turn()
        await system.github.sim.faults.wait_held("held")
        await system.controller.beside.stop()  # in the middle of the request
        await stop(system)
        system.github.sim.faults.release("held", drop=True)
        assert ((await only(system))["status"], len(runs(system))) == ("running", 1)
        async with started_again(system, tmp_path):
            await pass_time(system, OCCURRENCE_LEASE - timedelta(seconds=1), 6)
            assert (await only(system))["status"] == "running"  # it may be under way somewhere else
            await pass_time(system, timedelta(minutes=7), 14)
            seen = await only(system)
            assert (seen["status"], seen["run_id"]) == ("completed", runs(system)[0].id)
            assert sent(system) == 1
            assert await system.rows("SELECT 1 FROM events WHERE kind = 'schedule.reclaimed'")


@pytest.mark.parametrize(("hours", "came"), [(0.1, "completed"), (25, "skipped")], ids=["over", "under way"])
async def test_an_app_that_was_installed_anew_is_found_again(night: Night, hours: float, came: str) -> None:
    """Also for the question whether the run before is over: its answer is not that nobody knows the run."""
    async with night() as system:
        long = JobSpec(["rv1"], timedelta(hours=hours).total_seconds())
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [long])
        (known,) = system.queue("acme/widgets", "rv1", seconds=1)
        await system.until(system.finished([known]))
        await pass_time(system, timedelta(minutes=10), 20)
        old = system.github.sim.world.accounts["acme"].installation.id
        system.github.sim.uninstall("acme")
        system.github.sim.reinstall("acme")
        await go_to(system, HALF_PAST_ONE + timedelta(days=1))
        now = system.clock.now()
        seen = "UPDATE jobs SET seen_at = %(now)s WHERE job_id = %(known)s AND installation_id = %(old)s RETURNING 1"
        assert await system.rows(seen, now=now, known=known, old=old)
        await pass_time(system, timedelta(minutes=2), 4)
        first, second = await occurrences(system)
        assert (first["status"], second["status"], second["error"]) == ("completed", came, None)
        new = [run.id for run in runs(system) if run.id != first["run_id"]]
        assert new == ([second["run_id"]] if came == "completed" else [])


async def test_missed_nights_that_are_made_good_wait_for_each_other(
    database_url: str, tmp_path: Path
) -> None:
    schedule = {**NIGHTLY, "catchUp": "run_all_capped", "catchUpCap": 2}
    async with a_system(
        database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}, schedules=[schedule]
    ) as system:
        system.github.sim.add_workflow("acme/widgets", "nightly.yml", [JobSpec(["rv1"], 60.0)])
        await turn(system)
        await go_to(system, HALF_PAST_ONE + timedelta(days=4, hours=2))
        for _ in range(40):
            await system.step()
            under_way = [run for run in runs(system) if any(job.status != "completed" for job in run.jobs)]
            assert len(under_way) <= 1
        statuses = [row["status"] for row in await occurrences(system)]
        assert statuses == ["missed", "missed", "missed", "completed", "completed"]
        assert len(runs(system)) == 2
