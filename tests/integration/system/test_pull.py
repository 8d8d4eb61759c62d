"""Deliveries that GitHub lists but does not hand out, and those that come before and after them."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from controller.reconcile.pull import BATCH
from tests.integration.system.reading import asked, lose_leadership, step_until
from tests.integration.system.test_restored import Dump
from tests.systems import System, a_pool, a_system

ONE_BOARD: dict[str, Any] = {"pools": [a_pool("rv1")], "boards": {"rv1": 1}}
FETCH = "apps/get-webhook-delivery"
LIST = "apps/list-webhook-deliveries"
MINT = "apps/create-installation-access-token"
SWEEP = "actions/list-workflow-runs.*"


def withhold(system: System, *delivery_ids: int) -> list[str]:
    """GitHub answers 500 when it is asked for these; the names of the rules."""
    faults = system.github.sim.faults
    return [
        faults.add(operation=FETCH, path=f".*/{each}$", status=500, times=None).name for each in delivery_ids
    ]


async def unheard(system: System, jobs: int) -> list[int]:
    """So many jobs whose `queued` nobody received; the ids of these deliveries."""
    sim = system.github.sim
    before, url, sim.webhook_url = set(sim.world.deliveries), sim.webhook_url, None
    for _ in range(jobs):
        system.queue("acme/widgets", "rv1", seconds=5)
    await system.settle()
    sim.webhook_url = url
    return sorted(set(sim.world.deliveries) - before)


async def given_up(system: System) -> list[dict[str, Any]]:
    return await system.rows("SELECT detail FROM events WHERE kind = 'delivery.given_up' ORDER BY id")


async def test_deliveries_that_github_never_hands_out_hold_up_no_later_one(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.turn()
        withheld = await unheard(system, 3)
        withhold(system, *withheld)
        await system.step(60)
        await unheard(system, 1)
        await system.step(60)
        jobs = await system.rows("SELECT learnt_from FROM jobs")
        assert jobs == [{"learnt_from": "pull"}]
        assert await given_up(system) == []


async def test_a_delivery_that_github_never_hands_out_is_given_up_and_an_event_says_so(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.turn()
        withheld = await unheard(system, 4)
        withhold(system, *withheld)
        for _ in range(50):
            await system.step(60)
        assert await given_up(system) == []  # GitHub may be away for so long
        with capture_logs() as log:
            for _ in range(60):
                await system.step(60)
        guids = {system.github.sim.world.deliveries[each].guid for each in withheld}
        assert {row["detail"]["guid"] for row in await given_up(system)} == guids
        assert len(await given_up(system)) == 4
        assert sum(line["event"] == "delivery.given_up" for line in log) == 4
        before = len(asked(system, FETCH))
        await system.step(60)
        assert len(asked(system, FETCH)) == before


async def test_one_that_was_withheld_for_a_while_is_taken_in(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.turn()
        withheld = await unheard(system, 3)
        rules = withhold(system, *withheld)
        for _ in range(20):
            await system.step(60)
        assert await system.rows("SELECT 1 FROM jobs WHERE learnt_from = 'pull'") == []
        for rule in rules:
            system.github.sim.faults.remove(rule)
        await system.step(60)
        assert len(await system.rows("SELECT 1 FROM jobs")) == 3


async def test_what_a_first_look_took_in_before_it_was_cut_short_hides_nothing_older(
    database_url: str, tmp_path: Path
) -> None:
    """The receiver had answered 200 to them all, so GitHub does not list them as failed."""
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        system.queue("acme/widgets", "rv1")
        await system.turn()
        dump, kept = Dump(system), set(system.github.sim.world.deliveries)
        await dump.take()
        for _ in range(5):
            system.queue("acme/widgets", "rv1")
            await system.step(10)
        _, *others = sorted(set(system.github.sim.world.deliveries) - kept)
        await system.clock.advance(timedelta(minutes=30))
        await dump.restore()
        rules = withhold(system, *others)
        system.github.sim.faults.add(operation=SWEEP, status=500, times=None)  # it would find them too
        await lose_leadership(system)
        assert len(await system.rows("SELECT 1 FROM jobs")) == 2  # the first of the five was taken in
        for rule in rules:
            system.github.sim.faults.remove(rule)

        async def all_known() -> bool:
            return len(await system.rows("SELECT 1 FROM jobs")) == 6

        await step_until(system, all_known, 60)
        learnt = await system.rows("SELECT count(*) AS jobs FROM jobs WHERE learnt_from = 'pull'")
        assert learnt == [{"jobs": 5}]


async def test_a_long_list_that_breaks_off_was_not_read_for_nothing(
    database_url: str, tmp_path: Path
) -> None:
    async with a_system(database_url, tmp_path, pools=[a_pool("rv1")], boards={"rv1": 0}) as system:
        await system.turn()
        await unheard(system, BATCH + 50)
        system.github.sim.limits.points_per_minute = 10 * BATCH
        faults = system.github.sim.faults
        faults.add(operation=SWEEP, status=500, times=None)  # it would find them too
        broken = faults.add(operation=LIST, status=500, times=None, skip=BATCH // 100)
        await system.step(60)
        assert len(await system.rows("SELECT 1 FROM jobs")) == BATCH
        faults.remove(broken.name)
        await system.step(60)
        assert len(await system.rows("SELECT 1 FROM jobs")) == BATCH + 50


async def test_pulling_leaves_an_app_the_requests_for_its_tokens(database_url: str, tmp_path: Path) -> None:
    async with a_system(database_url, tmp_path, **ONE_BOARD) as system:
        await system.turn()
        system.github.sim.limits.core = 150
        await unheard(system, 200)
        await system.step(60)
        await system.step(60)
        learnt = await system.rows("SELECT 1 FROM jobs WHERE learnt_from = 'pull'")
        assert 100 < len(learnt) < 150
        system.github.sim.revoke_tokens("acme")
        minted = len(asked(system, MINT))
        await system.until(lambda: len(asked(system, MINT)) > minted)
        assert not await system.rows("SELECT 1 FROM events WHERE kind = 'installation.auth_failed'")
