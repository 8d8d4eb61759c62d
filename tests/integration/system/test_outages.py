"""Outages: GitHub, the cluster and the database are away for a while. The controller goes on, says what it does not
know, concludes nothing from that, and catches up."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controller.simulators.cluster import Behaviour
from controller.simulators.github import WebhookRule
from controller.simulators.postgres import EmbeddedPostgres
from tests.leftovers import loose_ends
from tests.postgres import Databases
from tests.systems import System, a_pool, a_system

POOLS = [a_pool("rv1")]
LISTS = "actions/list-self-hosted-runners-in-group-for-org"
JIT = "actions/generate-runner-jitconfig-for-org"
REST = '</orgs/acme/actions/runner-groups/999/runners?page=2>; rel="next"'  # where nothing is


def unknown(system: System) -> str:
    """What `/ready` says is unknown."""
    return "\n".join(system.controller.loop.snapshot().unknown)


def live_pods(system: System) -> int:
    return sum(pod["status"]["phase"] in ("Pending", "Running") for pod in system.cluster.pods())


async def minutes(system: System, number: float) -> None:
    """Let time pass, an iteration every 15 s."""
    for _ in range(int(number * 4)):
        await system.step(15)


@contextmanager
def github_answers(system: System, status: int, **fields: object) -> Iterator[None]:
    """Every request to GitHub gets this answer."""
    rule = system.github.sim.faults.add(status=status, times=None, **fields)
    yield
    system.github.sim.faults.remove(rule.name)


@contextmanager
def cluster_answers(system: System, status: int) -> Iterator[None]:
    """Every request to the API server gets this answer, and no watch goes on."""
    rule = system.cluster.faults.add(status=status, times=None)
    system.cluster.drop_watches()
    yield
    system.cluster.faults.remove(rule.name)


async def test_github_fails_then_limits_then_recovers(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 3}) as system:
        started = system.queue("acme/widgets", "rv1", seconds=400)
        await minutes(system, 1)
        waiting = system.queue("acme/widgets", "rv1", jobs=2)
        with github_answers(system, 500), capture_logs() as log:
            await minutes(system, 10)
            assert "500" in unknown(system)
        assert {line["event"] for line in log} >= {"worker.provision_failed", "deliveries.unknown"}
        assert live_pods(system) == 0  # but for the one that ran, and has ended
        assert system.finished(started)()
        asked = len(system.github.sim.requests)
        with github_answers(system, 429, headers={"retry-after": "90"}):
            await minutes(system, 1)
            assert len(system.github.sim.requests) - asked <= 4  # two Apps and an installation, asked once
        installation = system.github.scope("acme").installation_id
        await minutes(system, 1)
        system.github.sim.limits.trip_secondary(installation, timedelta(minutes=2))
        await system.until(system.finished(waiting), 15)
        await minutes(system, 1)
        assert await system.statuses() == {"completed": 3}
        assert unknown(system) == ""
        assert [row["mark"] for row in await system.rows("SELECT mark FROM jobs")] == [None] * 3


async def test_an_installation_that_is_limited_is_said_and_its_job_waits_for_the_time(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        installation = system.github.scope("acme").installation_id
        system.github.sim.limits.trip_secondary(installation, timedelta(minutes=3))
        ids = system.queue("acme/widgets", "rv1")
        await minutes(system, 1)
        assert f"installation {installation} is limited until" in unknown(system)
        (job,) = await system.rows("SELECT skip_reason FROM jobs")
        assert job["skip_reason"] in ("github_budget_low", "backing_off")
        await system.until(system.finished(ids), 15)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 502},
        {"status": 200, "body": {"total_count": 101, "runners": []}, "headers": {"link": REST}},
        {"drop": "before"},
    ],
    ids=["fails", "is partial", "is cut off"],
)
async def test_a_failed_runner_list_taken_as_empty_would_end_healthy_workers(
    answer: dict[str, object], database_url: str, tmp_path: Path
) -> None:
    """The workers are online without a job; missing from a list they would be `runner_removed`."""
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 2}) as system:
        (job_id,) = system.queue("acme/widgets", "rv1", seconds=30)
        system.cluster.set_board_behaviour("rv1-1", Behaviour(start_time=timedelta(minutes=1)))
        system.cluster.set_board_behaviour("rv1-2", Behaviour(start_time=timedelta(minutes=1)))
        await system.step()
        system.github.sim.cancel_job(job_id)
        await minutes(system, 3)
        system.github.sim.validator = None
        rule = system.github.sim.faults.add(operation=LISTS, times=None, **answer)
        await minutes(system, 5)
        assert rule.hits
        assert "the runners of acme: list_runners" in unknown(system)
        assert await system.statuses("workers") == {"running": 1}
        system.github.sim.faults.remove(rule.name)
        await minutes(system, 2)
        assert "the runners of acme" not in unknown(system)


async def test_busy_runners_killed_on_a_stale_busy_false_would_lose_their_job(
    database_url: str, tmp_path: Path
) -> None:
    timings = {"idleTimeout": "60s", "registrationTimeout": "60s"}
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}, timings=timings) as system:
        system.github.sim.behaviour.busy_lag = timedelta(seconds=60)
        rule = WebhookRule("lose", action="in_progress", times=None)
        system.github.sim.faults.webhooks.rules.append(rule)
        (job_id,) = system.queue("acme/widgets", "rv1", seconds=900)
        await system.until(system.finished([job_id]), 15)
        assert system.github.sim.ledger.job(job_id).conclusion == "success"
        assert rule.hits


async def test_an_api_server_away_for_minutes_ends_no_worker_and_starts_none(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 2}) as system:
        running = system.queue("acme/widgets", "rv1", seconds=600)
        await minutes(system, 1)
        with cluster_answers(system, 503), capture_logs() as log:
            await minutes(system, 1)
            waiting = system.queue("acme/widgets", "rv1")
            await minutes(system, 1)
            assert "pods cannot be watched" in unknown(system)
            assert "nodes cannot be watched" in unknown(system)
            assert await system.statuses("workers") == {"running": 1}
            (job,) = await system.rows("SELECT skip_reason FROM jobs WHERE status = 'pending'")
            assert job["skip_reason"] == "cluster_unknown"
        assert "watch.broken" in {line["event"] for line in log}
        await system.until(system.finished([*running, *waiting]), 15)
        await minutes(system, 1)
        assert unknown(system) == ""
        assert await system.statuses("workers") == {"completed": 2}


async def test_an_api_server_away_for_seconds_costs_waiting_jobs_no_attempt_and_github_no_request(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 2}) as system:
        await system.turn()
        with cluster_answers(system, 503):
            await system.clock.advance(timedelta(seconds=2))
            ids = system.queue("acme/widgets", "rv1", jobs=2)
            await system.turn()
            await system.step(5)
            jobs = await system.rows("SELECT skip_reason, attempts FROM jobs")
            assert jobs == [{"skip_reason": "cluster_unknown", "attempts": 0}] * 2
            assert not [each for each in system.github.sim.requests if "jitconfig" in each.operation]
        await system.until(system.finished(ids))
        await system.step()
        assert await system.statuses("workers") == {"completed": 2}


async def test_dropped_watches_and_forgotten_versions_lose_nothing(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 2}) as system:
        ids = system.queue("acme/widgets", "rv1", jobs=4)
        done = system.finished(ids)
        while not done():
            await system.step()
            system.cluster.compact()  # whoever comes back gets 410
            system.cluster.drop_watches()
        await minutes(system, 1)
        assert await system.statuses() == {"completed": 4}
        assert await system.statuses("workers") == {"completed": 4}


async def test_a_database_that_restarts_is_said_and_led_again(
    own_postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    url = await Databases(own_postgres).migrated()
    async with a_system(url, tmp_path, pools=POOLS, boards={"rv1": 2}) as system:
        ids = system.queue("acme/widgets", "rv1", jobs=2, seconds=60)
        await system.step()
        own_postgres.stop()
        with capture_logs() as log:
            await system.step()
        loop = system.controller.loop
        assert not loop.snapshot().leads
        assert "StoreUnavailable" in (loop.snapshot().last_error or "")
        assert "leader.stood_down" in {line["event"] for line in log}
        own_postgres.start()
        await system.until(system.finished(ids))
        await minutes(system, 2)  # a delivery that met no database is pulled
        assert loop.snapshot().leads
        assert loop.snapshot().last_error is None
        assert await system.statuses() == {"completed": 2}
        assert await system.statuses("workers") == {"completed": 2}


ONCE = """
CREATE SEQUENCE times;
CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('times') <= 2 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '{code}'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER conflict BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION conflict();
"""


@pytest.mark.parametrize("code", ["serialization_failure", "deadlock_detected", "lock_not_available"])
@pytest.mark.parametrize("table", ["workers", "boards"])
async def test_a_step_that_meets_a_conflict_is_left_out_and_the_leader_leads_on(
    code: str, table: str, database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}) as system:
        async with system.database.transaction() as connection:
            await connection.execute(ONCE.format(code=code, table=table).encode())
        ids = system.queue("acme/widgets", "rv1")
        with capture_logs() as log:
            await system.until(system.finished(ids))
            await system.step()
        events = [line["event"] for line in log]
        assert events.count("step.left_out") == 2
        assert events.count("leader.acquired") == 1
        assert "leader.stood_down" not in events
        assert await system.statuses() == {"completed": 1}


async def test_a_runner_registered_late_by_a_former_leader_is_found_and_deleted(
    database_url: str, tmp_path: Path
) -> None:
    """Its request was under way when it stopped leading; the row had ended before the runner was there."""
    timings = {"podDeleteGrace": "60s"}
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}, timings=timings) as system:
        held = system.github.sim.faults.add(operation=JIT, hold="before")
        ids = system.queue("acme/widgets", "rv1")
        await system.settle()
        await system.controller.loop.turn()
        await held.wait_held()
        await system.controller.beside.stop()
        await system.turn()
        assert await system.statuses("workers") == {"failed": 1, "pending": 1}
        held.release(drop=False)
        await system.until(system.finished(ids))
        left = [runner for runner in system.github.sim.ledger.runners() if runner.removed_at is None]
        assert len(left) == 1
        await minutes(system, 7)
        assert await loose_ends(system.github, system.cluster, system.database) == []


LONG_COMMIT = """
CREATE FUNCTION earlier() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.completed_at := NEW.completed_at - interval '55 seconds'; RETURN NEW; END $$;
CREATE TRIGGER earlier BEFORE UPDATE ON workers FOR EACH ROW WHEN (NEW.status = 'failed' AND OLD.status <> 'failed')
    EXECUTE FUNCTION earlier();
"""


async def test_a_worker_whose_failure_was_long_in_committing_is_cleaned_up_after(
    database_url: str, tmp_path: Path
) -> None:
    """Its row says that it failed before GitHub's scopes were last gone through, and it was not seen then."""
    timings = {"podDeleteGrace": "60s"}
    async with a_system(database_url, tmp_path, pools=POOLS, boards={"rv1": 1}, timings=timings) as system:
        await system.until(system.finished(system.queue("acme/widgets", "rv1")))
        await minutes(system, 20)  # nobody looks at the scope any more
        async with system.database.transaction() as connection:
            await connection.execute(LONG_COMMIT)
        held = system.github.sim.faults.add(operation=JIT, hold="before")
        ids = system.queue("acme/widgets", "rv1")
        await system.settle()
        await system.controller.loop.turn()
        await held.wait_held()
        await system.controller.beside.stop()
        await system.turn()
        assert await system.statuses("workers") == {"completed": 1, "failed": 1, "pending": 1}
        held.release(drop=False)
        await system.until(system.finished(ids))
        left = [runner for runner in system.github.sim.ledger.runners() if runner.removed_at is None]
        assert len(left) == 1
        await minutes(system, 10)
        assert await loose_ends(system.github, system.cluster, system.database) == []
