"""The endings that the breaker judges by: however large the fleet, nothing that holds a board or pool is left out."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.decide.breaker import Breakers, judge_breakers
from controller.domain.constants import BREAKER_MEMORY
from controller.gateways.postgres.breakers import NEWEST, BreakerStore
from controller.gateways.postgres.database import Database
from tests.clocks import EPOCH as NOW
from tests.integration.postgres.queries import rows

IMAGES = {"x": "new", "y": "new", "z": "another"}
WORKERS = """
INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image, node,
    status, failure_reason, online_at, warm_for, pod_at, pod_ended_at, created_at, completed_at, updated_at)
SELECT %(name)s || '-' || n, 1, 'org', 'Organization', '111', 1, '{x}', %(pool)s, %(image)s,
    COALESCE(%(node)s, 'board-' || n %% 500), %(status)s, %(reason)s, %(online_at)s, %(warm_for)s, t, t, t, t, t
FROM generate_series(1, %(count)s) n, LATERAL (SELECT %(at)s - n * interval '10 milliseconds' AS t) times
"""


async def seed(database: Database, name: str, at: datetime, count: int = 1, **fields: Any) -> None:
    """So many workers that ended about then; they failed if a reason is given."""
    values: dict[str, Any] = {"pool": "x", "image": "new", "node": None, "reason": None}
    values |= {"online_at": None, "warm_for": None, **fields}
    values |= {"name": name, "at": at, "count": count}
    values |= {"status": "failed" if values["reason"] else "completed"}
    async with database.transaction() as connection:
        await connection.execute(WORKERS, values)


async def judged(database: Database) -> Breakers:
    endings = await BreakerStore(database).endings(NOW - BREAKER_MEMORY, IMAGES)
    assert [each.at for each in endings] == sorted((each.at for each in endings), reverse=True)
    return judge_breakers(endings, IMAGES, NOW)


def held(breakers: Breakers) -> set[str]:
    return {hold.target for hold in breakers.holds}


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


async def test_thousands_of_endings_elsewhere_make_nothing_forgotten(database: Database) -> None:
    await seed(database, "rare", ago(100), pool="z", image="another")
    await seed(database, "bad", ago(20), 8, node="bad-board", reason="pod_failed")
    await seed(database, "refused", ago(7), 4, pool="y", image="old", reason="runner_version_refused")
    await seed(database, "busy", ago(0.1), 5_000)
    images = {**IMAGES, "w": "old"}
    endings = await BreakerStore(database).endings(NOW - BREAKER_MEMORY, images)
    breakers = judge_breakers(endings, images, NOW)
    assert held(breakers) == {"bad-board", "w"}
    assert "z" not in breakers.trials  # it was seen working
    assert len(endings) < 20


async def test_what_says_nothing_does_not_hide_what_does(database: Database) -> None:
    await seed(database, "refused", ago(1), 2, node="bad-board", reason="runner_version_refused")
    await seed(database, "outage", ago(0.5), 3 * NEWEST, node="bad-board", reason="provision_failed")
    assert held(await judged(database)) == {"x", "y"}


async def test_of_a_long_run_of_failures_the_newest_are_read(database: Database) -> None:
    await seed(database, "bad", ago(1), 3 * NEWEST, node="bad-board", reason="pod_failed")
    assert held(await judged(database)) == {"bad-board"}
    endings = await BreakerStore(database).endings(NOW - BREAKER_MEMORY, IMAGES)
    assert {each.worker for each in endings} == {f"bad-{n}" for n in range(1, NEWEST + 1)}


@pytest.mark.parametrize(
    ("fields", "still"),
    [
        ({}, False),
        ({"image": "old"}, True),  # the pool has another image now
        ({"pool": "gone", "image": "old"}, False),  # of a pool that was removed: the board worked
        ({"reason": "runner_idle", "online_at": NOW}, False),
        ({"reason": "pod_failed", "online_at": NOW}, False),
        ({"reason": "node_unreachable"}, True),
    ],
)
async def test_a_board_is_held_until_one_of_its_workers_has_worked(
    database: Database, fields: dict[str, Any], still: bool
) -> None:
    await seed(database, "bad", ago(1), 6, node="board-1", reason="pod_failed")
    await seed(database, "later", ago(0.5), node="board-1", **fields)
    assert ("board-1" in held(await judged(database))) is still


async def test_a_job_shows_that_its_worker_worked_whatever_it_ended_for(database: Database) -> None:
    await seed(database, "bad", ago(1), 6, node="board-1", reason="pod_failed")
    await seed(database, "later", ago(0.5), node="board-1", reason="node_unreachable")
    await rows(
        database,
        """INSERT INTO jobs (job_id, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels,
            run_id, status, runner_name, heard_at, poll_at, created_at, seen_at, updated_at)
        VALUES (1, 1, 'org', 'Organization', 'org/repo', '111', 1, '{x}', 1, 'completed', 'later-1',
            %(now)s, %(now)s, %(now)s, %(now)s, %(now)s) RETURNING 1""",
        now=NOW,
    )
    assert held(await judged(database)) == set()


async def test_what_was_forgiven_and_what_spares_did_is_left_out(database: Database) -> None:
    await seed(database, "spare", ago(1), 6, node="board-1", reason="pod_failed", warm_for=1)
    await seed(database, "pool", ago(1), 6, node="board-2", reason="pod_failed")
    await seed(database, "board", ago(1), 6, node="board-3", pool="y", reason="pod_failed")
    await seed(database, "later", ago(0.1), 6, node="board-3", pool="y", reason="pod_failed")
    pardon = "INSERT INTO pardons (scope, target, at) VALUES (%(scope)s, %(target)s, %(at)s) RETURNING 1"
    await rows(database, pardon, scope="pool", target="x", at=NOW)
    await rows(database, pardon, scope="board", target="board-3", at=ago(0.5))
    endings = await BreakerStore(database).endings(NOW - BREAKER_MEMORY, IMAGES)
    assert {each.worker.partition("-")[0] for each in endings} == {"later"}


async def test_who_resumes_one_pool_forgives_what_its_image_was_refused_for(database: Database) -> None:
    await seed(database, "refused", ago(1), 3, pool="y", reason="runner_version_refused")
    await seed(database, "failed", ago(1), 6, pool="y", node="board-1", reason="pod_failed")
    assert held(await judged(database)) == {"x", "y", "board-1"}
    pardon = "INSERT INTO pardons (scope, target, at) VALUES ('pool', 'x', %(at)s) RETURNING 1"
    await rows(database, pardon, at=NOW)
    assert held(await judged(database)) == {"board-1"}
