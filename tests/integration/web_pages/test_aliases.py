"""Two names of one page."""

import httpx

from tests.integration.web_pages.seeding import Seed


async def test_jobs_is_a_shorter_name_of_history(browser: httpx.AsyncClient, seed: Seed) -> None:
    for job_id in (1, 2, 3):
        await seed.job(job_id=job_id)
    for suffix in ("", ".json"):
        history, jobs = await browser.get(f"/history{suffix}"), await browser.get(f"/jobs{suffix}")
        assert history.status_code == jobs.status_code == 200
        assert history.text.replace("/history", "/jobs") == jobs.text.replace("/history", "/jobs")
    assert len((await browser.get("/jobs.json")).json()) == 3
