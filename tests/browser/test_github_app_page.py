"""The page that creates the GitHub App, in a real browser: what it sends and shows is for the GitHub that was named."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Page, Route, expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from tests.chart.helm import ROOT
from tests.serving import serving

MANIFESTS = ROOT / "deploy" / "github-app"
OF_ACME = "/organizations/acme/settings/apps/new"


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """The page, served as the README says."""
    app = Starlette(routes=[Mount("/", StaticFiles(directory=MANIFESTS))])
    async with serving(app) as url:
        context = await browser.new_context(base_url=url.replace("127.0.0.1", "localhost"))
        yield await context.new_page()
        await context.close()


@pytest.mark.parametrize(
    ("github", "kind", "owner", "form", "api"),
    [
        ("https://github.com", "organization", "acme", OF_ACME, "https://api.github.com"),
        ("https://github.com", "user", "acme", OF_ACME, "https://api.github.com"),
        ("https://acme.ghe.com", "user", "", "/settings/apps/new", "https://api.acme.ghe.com"),
        ("https://git.example.org/", "user", "", "/settings/apps/new", "https://git.example.org/api/v3"),
    ],
)
async def test_the_app_is_made_and_fetched_where_it_was_asked_for(
    page: Page, github: str, kind: str, owner: str, form: str, api: str
) -> None:
    sent: list[tuple[str, dict[str, list[str]]]] = []

    async def create(route: Route) -> None:
        """What GitHub does: it makes the App and sends the browser back with a code and our state."""
        sent.append((route.request.url, parse_qs(route.request.post_data or "")))
        manifest = json.loads(sent[0][1]["manifest"][0])
        state = parse_qs(urlsplit(route.request.url).query)["state"][0]
        back = f"{manifest['redirect_url']}?code=a1b2&state={state}"
        await route.fulfill(status=302, headers={"location": back})

    await page.route(f"{github.rstrip('/')}/**", create)
    await page.goto("/create.html")
    await page.locator("#github").fill(github)
    await page.locator("#kind").select_option(kind)
    await page.locator("#owner").fill(owner)
    await page.locator("#name").fill("our-boards")
    await page.get_by_role("button", name="Create on GitHub").click()
    await expect(page.locator("#command")).to_contain_text(f"POST {api}/app-manifests/a1b2/conversions")
    setting = page.locator("#setting")
    if api == "https://api.github.com":
        await expect(setting).to_be_hidden()
    else:
        await expect(setting).to_contain_text(f"config.github.apiUrl: {api}")
    ((address, posted),) = sent
    assert urlsplit(address).path == form
    manifest = json.loads(posted["manifest"][0])
    assert manifest["name"] == "our-boards"
    # Anybody may install a public one and use the boards: only where a private one could be installed nowhere.
    assert manifest["public"] is (kind == "user" and owner != "")
    assert manifest["hook_attributes"]["url"] == "https://switchboard.example.org/webhook"


async def test_the_app_of_an_organization_is_not_made_where_it_could_not_be_installed(page: Page) -> None:
    """It is a private one, so it must belong to the organization."""
    await page.goto("/create.html")
    await page.locator("#name").fill("our-boards")
    await page.get_by_role("button", name="Create on GitHub").click()
    await expect(page.locator("#owner:invalid")).to_be_focused()
    await page.locator("#kind").select_option("user")
    await expect(page.locator("#owner:invalid")).to_have_count(0)


@pytest.mark.parametrize("field", ["#address", "#github"])
@pytest.mark.parametrize("given", ["switchboard.example.org", ""])
async def test_an_address_that_is_none_is_pointed_at(page: Page, field: str, given: str) -> None:
    await page.goto("/create.html")
    await page.locator("#kind").select_option("user")
    await page.locator("#name").fill("our-boards")
    await page.locator(field).fill(given)
    await page.get_by_role("button", name="Create on GitHub").click()
    await expect(page.locator(f"{field}:invalid")).to_be_focused()


@pytest.mark.parametrize("kind", ["organization", "user"])
async def test_what_is_fetched_is_written_by_kind_and_for_oneself_alone(
    page: Page, kind: str, tmp_path: Path
) -> None:
    await page.goto("/create.html")
    asked = json.dumps({"github": "https://github.com", "state": "s", "kind": kind})
    await page.evaluate("asked => sessionStorage.setItem('asked', asked)", asked)
    await page.goto("/create.html?code=a1b2&state=s")
    command = await page.locator("#command").inner_text()
    answer = {"id": 7, "html_url": "https://github.com/apps/boards", "pem": "KEY", "webhook_secret": "HUSH"}
    curl = tmp_path / "curl"  # says what GitHub would say
    curl.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
    curl.chmod(0o755)
    folder = tmp_path / "here"
    folder.mkdir()
    shell = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, cwd=folder, env=shell, stdout=subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert said.decode() == "appId: 7\nInstall it: https://github.com/apps/boards/installations/new\n"
    written = {file.name: (file.read_text(), oct(file.stat().st_mode & 0o777)) for file in folder.iterdir()}
    assert written == {f"{kind}.pem": ("KEY", "0o600"), f"{kind}.webhook-secret": ("HUSH\n", "0o600")}


async def test_a_code_that_this_window_did_not_ask_for_is_not_used(page: Page) -> None:
    await page.goto("/create.html?code=a1b2&state=of-somebody-else")
    await expect(page.locator("#refused")).to_be_visible()
    await expect(page.locator("#created")).to_be_hidden()
