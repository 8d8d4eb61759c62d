"""What GitHub is known to do now and then: each is survived, and every job finishes."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from controller.gateways.github import GitHubGateway, RunnerGroup
from controller.simulators.cluster import Behaviour
from controller.simulators.github import JobSpec, WebhookRule
from tests.clocks import EPOCH, ManualClock
from tests.integration.system.reading import (
    all_completed,
    any_failed,
    asked,
    jit_calls,
    lost_jobs,
    step_until,
)
from tests.systems import a_pool, a_system
from tests.worlds import ORGANIZATION_APP, a_github

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}
FIVE_MINUTES = timedelta(minutes=5)


@pytest.mark.parametrize("stateless", [True, False], ids=["long tokens", "short tokens"])
async def test_tokens_of_both_kinds_that_expire_or_are_revoked(
    database_url: str, tmp_path: Path, stateless: bool
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.github.sim.behaviour.stateless_tokens = stateless
        system.github.sim.behaviour.token_life = FIVE_MINUTES
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        system.github.sim.revoke_tokens("acme")
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        await system.step(301)
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        assert await system.statuses("workers") == {"completed": 3}
        assert len(asked(system, "create-installation-access-token")) == 3


@pytest.mark.parametrize(
    ("kind", "status", "retry_after"),
    [
        ("primary", 403, False),
        ("primary", 429, False),
        ("primary", 403, True),
        ("primary", 429, True),
        ("secondary", 403, True),
        ("secondary", 429, True),
        ("secondary", 403, False),
        ("secondary", 429, False),
    ],
)
async def test_rate_limits_are_obeyed_per_installation(
    database_url: str, tmp_path: Path, kind: str, status: int, retry_after: bool
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        limits, installation = system.github.sim.limits, system.github.scope("acme").installation_id
        setattr(limits, f"{kind}_status", status)
        setattr(limits, f"{kind}_retry_after", retry_after)
        if kind == "primary":
            limits.exhaust(installation)
            limits.bucket(("installation", installation)).resets_at = system.clock.now() + FIVE_MINUTES
        else:
            limits.trip_secondary(installation, timedelta(minutes=3))
        hers = system.queue("jane/one", "rv1")
        ids = system.queue("acme/widgets", "rv1")
        await system.until(system.finished(hers))
        await system.until(system.finished(ids), 30)
        refused = system.github.sim.requests.matching(installation_id=installation, status=status)
        assert 1 <= len(refused) <= 3


async def test_500_for_ten_minutes_then_recovery(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        ids = system.queue("acme/widgets", "rv1", jobs=2, seconds=900)
        await system.turn()
        await system.step(10)
        rule = system.github.sim.faults.add(operation="(actions|apps)/.*", status=500, times=None)
        ids += system.queue("acme/widgets", "rv1", jobs=2)
        for _ in range(20):
            await system.step(30)
        assert await system.statuses() == {"running": 2, "pending": 2}
        system.github.sim.faults.remove(rule.name)
        await system.until(system.finished(ids), 60)
        assert lost_jobs(system) == []


async def test_a_registration_that_is_gone_when_it_is_to_be_deleted(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        system.cluster.set_board_behaviour("rv1-1", Behaviour(hang=True))
        system.queue("acme/widgets", "rv1")
        await system.turn()
        (runner,) = system.github.sim.ledger.runners()
        await system.step(10)
        system.github.sim.remove_runner(runner.name)
        await step_until(system, any_failed(system))
        (worker,) = await system.rows("SELECT failure_reason FROM workers WHERE status = 'failed'")
        assert worker["failure_reason"] == "runner_never_registered"


async def test_a_name_that_github_has_already_is_freed_and_another_one_taken(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        rule = system.github.sim.faults.add(operation=".*jitconfig.*", hold="before")
        ids = system.queue("acme/widgets", "rv1")
        await system.settle()
        await system.controller.loop.turn()
        await rule.wait_held()
        (row,) = await system.rows("SELECT name FROM workers WHERE status = 'pending'")
        account = system.github.sim.world.accounts["acme"]
        group = next(g for g in account.groups.values() if g.name == system.file.runner_group)
        system.github.sim.runners.register(account, None, group, row["name"], ["rv1"])
        rule.release(drop=False)
        await system.until(system.finished(ids))
        assert [each.status for each in system.github.sim.requests if "jitconfig" in each.operation].count(
            409
        ) == 1
        assert system.github.sim.ledger.runner(row["name"]).removed_why == "deleted"
        assert await system.statuses("workers") == {"completed": 2, "failed": 1}


async def test_a_job_that_is_not_picked_up_in_time_goes_to_the_next_runner(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        system.github.sim.faults.add(operation="runner/job", hold="before", times=1)
        ids = system.queue("acme/widgets", "rv1", jobs=2)
        await system.until(system.finished(ids[:1]), 20)
        await system.until(system.finished(ids), 20)
        told = [what for job in system.github.sim.ledger.jobs() for _, what in job.events]
        assert "requeued" in told
        assert lost_jobs(system) == []


async def test_a_runner_that_is_offline_and_busy_is_left_alone(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        faults = system.github.sim.faults
        faults.webhooks.rules.append(WebhookRule("lose", action="in_progress"))
        faults.add(operation="runner/renew", status=500, times=6)
        faults.add(
            operation="actions/list-(jobs|workflow-runs).*", status=500, times=None
        )  # no repair either
        ids = system.queue("acme/widgets", "rv1", seconds=900)
        shown: set[tuple[bool, bool]] = set()  # online, busy

        def finished_or_shown() -> bool:
            runners = system.github.sim.runners
            world = system.github.sim.world.runners.values()
            shown.update((runners.is_online(runner), runners.shown_busy(runner)) for runner in world)
            return system.finished(ids)()

        await system.until(finished_or_shown, 30)
        assert (False, True) in shown
        assert asked(system, "list-self-hosted-runners-in-group")
        assert lost_jobs(system) == []


async def test_lists_of_over_100_runners_that_shift_while_they_are_read(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        system.github.sim.behaviour.shuffle_lists = True
        await system.until(system.finished(system.queue("acme/widgets", "rv1", seconds=5)))
        account = system.github.sim.world.accounts["acme"]
        group = next(g for g in account.groups.values() if g.name == system.file.runner_group)
        for number in range(150):
            system.github.sim.runners.register(account, None, group, f"another-fleet-{number:03}", ["other"])
        system.github.sim.faults.webhooks.rules.append(WebhookRule("lose", action="in_progress"))
        system.github.sim.faults.add(operation="actions/list-(jobs|workflow-runs).*", status=500, times=None)
        ids = system.queue("acme/widgets", "rv1", seconds=900)
        await system.until(system.finished(ids), 30)
        assert lost_jobs(system) == []


async def test_completed_before_queued_doubles_and_disorder(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        rules = system.github.sim.faults.webhooks.rules
        rules.append(WebhookRule("delay", action="queued", delay=timedelta(minutes=4)))
        rules.append(WebhookRule("duplicate", action="completed"))
        (gone,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.cancel_job(gone)
        await system.step(10)
        system.github.sim.queue_run("acme/widgets", [JobSpec(["rv1"], conclusion="skipped")])
        await system.step(300)
        assert await system.statuses() == {"completed": 1}  # the late `queued` makes no demand
        assert jit_calls(system) == 0


async def test_deliveries_are_listed_over_all_pages(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.turn()
        url, system.github.sim.webhook_url = system.github.sim.webhook_url, None
        ids = system.queue("acme/widgets", "rv1")
        system.github.sim.queue_run(
            "acme/widgets", [JobSpec(["x"], conclusion="skipped") for _ in range(130)]
        )
        await system.settle()
        system.github.sim.webhook_url = url
        await system.until(system.finished(ids), 20)
        assert any("cursor" in each.query for each in system.github.sim.requests)


async def test_github_ends_what_was_queued_for_a_day(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        system.github.sim.behaviour.queue_limit = timedelta(minutes=15)  # a day there, but days are long
        system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.faults.webhooks.lose = 1.0
        for _ in range(6):
            await system.step(300)
        (job,) = await system.rows("SELECT status, conclusion FROM jobs")
        assert job == {"status": "completed", "conclusion": "cancelled"}


async def test_a_repository_that_was_renamed_is_followed(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        (job_id,) = system.queue("acme/widgets", "rv1")
        await system.turn()
        system.github.sim.rename_repository("acme/widgets", "gadgets")
        system.github.sim.faults.webhooks.lose = 1.0
        await system.until(system.finished([job_id]))
        await step_until(system, all_completed(system, 1), 60)
        assert any(each.status == 301 for each in system.github.sim.requests)


async def test_apps_whose_jwt_is_refused_for_a_while_catch_up(database_url: str, tmp_path: Path) -> None:
    """As it is while a machine's clock is off by minutes."""
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 2}) as system:
        await system.turn()
        refused = [
            system.github.sim.faults.add(operation=operation, status=401, times=None)
            for operation in ("apps/create-installation-access-token", "apps/list-webhook-deliveries")
        ]
        heard = system.queue("acme/widgets", "rv1")
        await system.settle()
        url, system.github.sim.webhook_url = system.github.sim.webhook_url, None
        missed = system.queue("acme/widgets", "rv1")
        for _ in range(20):
            await system.step(15)
        system.github.sim.webhook_url = url
        assert jit_calls(system) == 0
        assert await system.statuses() == {"pending": 1}
        assert await system.rows("SELECT 1 FROM jobs WHERE mark IS NOT NULL") == []
        assert all(rule.hits for rule in refused)
        for rule in refused:
            system.github.sim.faults.remove(rule.name)
        await system.until(system.finished([*heard, *missed]), 15)
        await step_until(system, all_completed(system, 2), 15)


@pytest.mark.parametrize("seconds", [-50, 50], ids=["slow", "fast"])
async def test_a_clock_that_is_off_by_less_than_a_minute_is_no_bar(seconds: int) -> None:
    theirs, ours = ManualClock(), ManualClock(EPOCH + timedelta(seconds=seconds))
    async with a_github(theirs) as github:
        group = RunnerGroup("RISE RISC-V Runners", "all", True)
        async with GitHubGateway(
            github.base_url, github.apps, ours, runner_group=group, observe=lambda seen: None
        ) as gateway:
            scope = github.scope("acme")
            found = await gateway.get_installation(ORGANIZATION_APP, scope.installation_id)
            assert found.installation_id == scope.installation_id
            assert await gateway.list_runners(scope) == ()
