"""Two controllers on one database: killed, cut off, paused. One acts at a time, and the other goes on."""

from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.children import Child
from tests.integration.processes.proxies import a_proxy
from tests.integration.processes.stages import Stage, a_stage, ending
from tests.waiting import until

pytestmark = pytest.mark.timeout(600)  # real processes on a machine that may be busy


FORMER = "former"  # the user as whom the first controller comes to the database
BOOK = f"""
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{FORMER}') THEN CREATE ROLE {FORMER} LOGIN SUPERUSER; END IF;
END $$;
CREATE TABLE writes (who text, relation text, row jsonb);
CREATE FUNCTION book() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO writes VALUES (session_user, TG_TABLE_NAME, to_jsonb(NEW)); RETURN NULL; END $$;
"""
BOOKED = "CREATE TRIGGER book AFTER INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW EXECUTE FUNCTION book()"
TABLES = ("jobs", "workers", "events", "holds", "boards", "board_snapshots", "schedules", "occurrences")


async def takes_over(child: Child) -> None:
    """Wait until it has led and come round."""
    await child.says("leader.acquired")
    await child.iterated(1)


async def ended(stage: Stage, name: str) -> None:
    """Wait until the worker's row has ended."""

    async def has_ended() -> bool:
        return (await stage.workers())[name]["status"] in ("completed", "failed")

    await until(has_ended)


async def keep_book(stage: Stage) -> None:
    """Note from now on who writes which row."""
    async with stage.database.transaction() as connection:
        await connection.execute(BOOK.encode())
        for table in TABLES:
            await connection.execute(BOOKED.format(table).encode())


async def written_by_the_former(stage: Stage) -> list[dict[str, Any]]:
    """Every row that the first controller wrote."""
    return await stage.rows("SELECT relation, row FROM writes WHERE who = %(who)s", who=FORMER)


async def test_when_the_leader_is_killed_the_one_that_stands_by_acts_next(
    database_url: str, tmp_path: Path
) -> None:
    async with a_stage(database_url, tmp_path) as stage, stage.child() as first:
        await takes_over(first)
        async with stage.child() as second, stage.child("webhook") as receiver:
            stage.github.sim.webhook_url = f"{receiver.url}/webhook"
            assert not await second.leads()
            assert (await receiver.ready())["role"] == "receiver"
            await first.kill()
            stage.queue(jobs=2)
            await takes_over(second)
            await stage.comes_to_rest()
            assert {row["status"] for row in (await stage.workers()).values()} == {"completed"}


async def test_a_leader_that_ends_in_order_hands_over_what_it_leads(
    database_url: str, tmp_path: Path
) -> None:
    async with a_stage(database_url, tmp_path) as stage, stage.child() as first:
        await takes_over(first)
        async with stage.child() as second:
            assert (await first.end()).code == 0
            assert first.said("program.stopped")
            await takes_over(second)


async def test_a_leader_whose_database_falls_silent_stops_acting_before_another_begins(
    database_url: str, tmp_path: Path
) -> None:
    """All packets are dropped while connections stay open: no keepalive notices that."""
    async with (
        a_proxy(database_url) as proxy,
        a_stage(database_url, tmp_path) as stage,
        stage.child(DATABASE_URL=proxy.url) as first,
    ):
        await takes_over(first)
        async with stage.child() as second:
            held = stage.cluster.faults.add(operation="create pods", hold="before")
            stage.queue()
            await held.wait_held()
            (victim,) = await stage.workers()
            proxy.fall_silent()
            stopped = await first.says("leader.stood_down")
            began = await second.says("leader.acquired")
            assert stopped["time"] < began["time"]
            assert (await first.ready())["role"] == "standby"
            assert (await first.ready())["last_error"].startswith("StoreUnavailable")
            held.release(drop=True)
            await stage.comes_to_rest()
            assert (await stage.workers())[victim]["failure_reason"] == "pod_missing"
            proxy.speak()
            await second.kill()
            stage.queue()
            await stage.comes_to_rest()  # by the first, which leads again


async def test_a_paused_leader_changes_no_row_and_what_it_did_outside_is_undone(
    database_url: str, tmp_path: Path
) -> None:
    former = make_conninfo(database_url, user=FORMER)
    async with a_stage(database_url, tmp_path) as stage:
        await keep_book(stage)
        async with stage.child(DATABASE_URL=former) as first:
            await takes_over(first)
            async with stage.child() as second:
                held = stage.cluster.faults.add(operation="create pods", hold="before")
                stage.queue()
                await held.wait_held()
                (victim,) = await stage.workers()
                first.pause()
                await second.says("leader.acquired")
                await ended(stage, victim)
                before = outcome((await stage.workers())[victim]), await written_by_the_former(stage)
                first.resume()
                held.release(
                    drop=False
                )  # the request was under way all the time: a pod comes that nobody wants
                await first.says("leader.stood_down")

                async def made() -> bool:
                    return victim in stage.pods()

                await until(made)
                await second.iterated(int((await second.ready())["iterations"]) + 2)
                assert ending(stage.pods().get(victim))
                await stage.comes_to_rest()
                assert (
                    outcome((await stage.workers())[victim]),
                    await written_by_the_former(stage),
                ) == before


@pytest.mark.parametrize("statement", [b"SET group_id", b"SET create_rv"], ids=["a runner", "a pod"])
async def test_what_a_paused_leader_had_sent_writes_nothing_when_it_arrives_late(
    statement: bytes, database_url: str, tmp_path: Path
) -> None:
    """Its own connections are alive and what it sent is on its way: nothing but the epoch is in between."""
    async with a_proxy(database_url) as proxy, a_stage(database_url, tmp_path) as stage:
        await keep_book(stage)
        async with stage.child(DATABASE_URL=make_conninfo(proxy.url, user=FORMER)) as first:
            await takes_over(first)
            async with stage.child() as second:
                proxy.fall_silent_at(statement)
                stage.queue()

                async def sent() -> bool:
                    return proxy.silent

                await until(sent)
                first.pause()
                await second.says("leader.acquired")
                before = await written_by_the_former(stage)
                assert before  # it had reserved the worker
                proxy.speak()
                await second.iterated(int((await second.ready())["iterations"]) + 2)
                first.resume()
                await first.says("leader.stood_down")
                await stage.comes_to_rest()
                assert await written_by_the_former(stage) == before


def outcome(row: dict[str, Any]) -> dict[str, Any]:
    """What a worker came to; where its pod was seen is added later too."""
    names = (
        "status",
        "failure_reason",
        "ending_reason",
        "completed_at",
        "runner_id",
        "jit_at",
    )
    return {name: row[name] for name in names}
