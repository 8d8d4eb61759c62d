"""Addresses as the reader sees them, behind a proxy that ends TLS too, and what an address may not ask."""

import re
from html import unescape

import httpx
import pytest

from tests.integration.web_pages.seeding import Seed

TLS = {"X-Forwarded-Proto": "https"}


async def test_links_to_other_slices_keep_to_the_readers_scheme(
    browser: httpx.AsyncClient, seed: Seed
) -> None:
    for job_id in (1, 2):
        await seed.job(job_id)
    twin = await browser.get("/jobs.json?per_page=1", headers=TLS)
    assert twin.links["next"]["url"] == "https://switchboard.test/jobs.json?per_page=1&page=2"
    page = await browser.get("/jobs?per_page=1&status=pending", headers=TLS)
    links = re.findall(r'<a href="([^"]+)" rel="next">', page.text)
    assert [unescape(link) for link in links] == ["/jobs?per_page=1&status=pending&page=2"]


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("/jobs/1/?x=1", "/jobs/1?x=1"),
        ("/jobs/", "/jobs"),
        ("//evil.example/", "/evil.example"),
        ("/%5Cevil.example/", "/%5Cevil.example"),
    ],
)
async def test_a_slash_too_many_leads_on_within_the_site_and_with_its_headers(
    browser: httpx.AsyncClient, address: str, place: str
) -> None:
    answer = await browser.get(httpx.URL("http://switchboard.test").copy_with(raw_path=address.encode()))
    assert (answer.status_code, answer.headers["location"]) == (307, place)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("address", ["/jobs", "/workers", "/jobs.json", "/workers.json"])
async def test_a_field_is_given_once(browser: httpx.AsyncClient, address: str) -> None:
    answer = await browser.get(f"{address}?status=failed&status=pending")
    assert answer.status_code == 400
    assert "status is given more than once; give it once. Several are separated by commas." in answer.text


async def test_the_search_field_takes_nothing_else(browser: httpx.AsyncClient) -> None:
    assert (await browser.get("/search?q=1&page=2")).status_code == 400
    assert (await browser.get("/search?query=1")).status_code == 400


async def test_a_form_shows_what_it_was_asked_for(browser: httpx.AsyncClient, seed: Seed) -> None:
    await seed.job(1)
    assert re.findall(r"<option selected>([^<]+)<", (await browser.get("/jobs?status=failed")).text) == [
        "failed"
    ]
    several = (await browser.get("/jobs?status=pending,running")).text
    assert re.findall(r"<option selected>([^<]+)<", several) == ["pending,running"]
