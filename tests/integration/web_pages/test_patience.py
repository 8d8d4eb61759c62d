"""A page does not wait for ever: what takes too long is cut off, and the reader is told."""

import httpx

from controller.gateways.postgres.database import Database


async def test_a_page_that_takes_too_long_is_cut_off_and_says_so(
    browser: httpx.AsyncClient, database: Database
) -> None:
    async with database.transaction() as connection:
        await connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        answer = await browser.get("/jobs")
    assert answer.status_code == 503
    assert "Nothing is lost; this page tries again by itself." in answer.text
    assert (await browser.get("/jobs")).status_code == 200
