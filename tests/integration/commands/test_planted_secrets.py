"""One run with planted secrets: none comes out anywhere but in the Secrets of the cluster."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx

from controller.domain.status import NoLoop
from controller.gateways.clock import SystemClock
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.pages import PageStore
from controller.settings import load_settings
from controller.simulators.cluster.objects import RESOURCES, SECRETS
from controller.simulators.cluster.programs import Container, Program
from controller.simulators.github import JobSpec
from controller.simulators.postgres import EmbeddedPostgres, wheel_binaries
from controller.web.admin import Admin
from controller.web.reader import PageDeps
from controller.web.routes import page_routes
from tests.children import Child, a_child, run
from tests.grounds import CLUSTER_TOKEN, HOOK_SECRET, POOL, Ground, a_ground
from tests.waiting import until
from tests.worlds import plain_http, rsa_key

PASSWORD = "planted-database-password-51e7c4"
ADMIN_TOKEN = "planted-admin-token-0d92fb"
REPO = "acme/widgets"


class Talkative:
    """A runner image that writes its whole environment into its log and fails, the first time on each board."""

    def __init__(self, runner: Program) -> None:
        self._runner = runner
        self._failed: set[str] = set()

    async def run(self, container: Container) -> int:
        """Tell everything once, then behave."""
        if container.node in self._failed:
            return await self._runner.run(container)
        self._failed.add(container.node)
        for name, value in container.env.items():
            container.log(f"{name}={value}")
            container.log(f"config.sh --jitconfig {value}")
            container.log(value)
        return 1


def planted(ground: Ground) -> Iterator[tuple[str, str]]:
    """Every secret there was in the run, by name."""
    yield "the database password", PASSWORD
    yield "the webhook secret", HOOK_SECRET
    yield "the admin token", ADMIN_TOKEN
    yield "the cluster's token", CLUSTER_TOKEN
    yield "the App's key", rsa_key()[0].decode().splitlines()[5]
    sim = ground.github.sim
    for token in sim.auth._tokens:
        yield "an installation token", token
    for config in jit_configs(ground):
        yield "a JIT config", config


def jit_configs(ground: Ground) -> set[str]:
    """Every JIT config that ever was in a Secret, also in one that is gone."""
    made = (change.object for change in ground.cluster.store.changes(SECRETS, 0))
    return {base64.b64decode(each["data"]["jitconfig"]).decode() for each in made if each.get("data")}


def leaks(text: str, secrets: list[tuple[str, str]]) -> list[str]:
    """The secrets that stand in a text, plain or in base64; they are not quoted."""
    return [
        name
        for name, value in secrets
        if value in text or base64.b64encode(value.encode()).decode().rstrip("=") in text
    ]


def every_path(ground: Ground) -> list[str]:
    """The path of every route that the controller serves."""
    settings = load_settings(None, ground.environment, needs=frozenset())
    clock = SystemClock()
    store = PageStore(Database(settings.database_url, settings.file.database.schema_, 1))
    admin = Admin(settings.admin_token, clock)
    deps = PageDeps(store, clock, NoLoop(clock.now()), settings.file, lambda: (b"", ""), admin)
    return [route.path for route in page_routes(deps)]


async def everything_shown(child: Child, ground: Ground) -> str:
    """All that the pages, their twins and the probes answer."""
    shown: list[str] = []
    async with httpx.AsyncClient(base_url=child.url, transport=plain_http(), timeout=30) as client:
        job = (await client.get("/jobs.json")).json()[0]["job_id"]
        worker = (await client.get("/workers.json")).json()[0]["name"]
        for path in every_path(ground):
            answer = await client.get(path.replace("{job_id}", str(job)).replace("{name}", worker))
            shown += [str(answer.headers), answer.text]
        refused = await client.post("/webhook", content=b"{}", headers={"x-hub-signature-256": "sha256=00"})
        shown.append(refused.text)
    return "\n".join(shown)


def dump(server_url: str) -> str:
    """The whole database as text."""
    done = subprocess.run(
        [wheel_binaries() / "pg_dump", "--inserts", "-d", server_url],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert "INSERT INTO" in done.stdout
    return done.stdout


async def test_no_planted_secret_comes_out_anywhere(own_postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    plain = own_postgres.url()
    url = plain.replace("postgres@", f"postgres:{PASSWORD}@", 1)
    async with a_ground(url, tmp_path, timings={"pollInterval": "1s"}) as ground:
        assert ground.cluster.default_program is not None
        ground.cluster.default_program = Talkative(ground.cluster.default_program)
        environment = ground.environment | {"SWITCHBOARD_ADMIN_TOKEN": ADMIN_TOKEN}
        migrated = await run("migrate", environment=environment)
        sim = ground.github.sim
        sim.faults.add(operation="actions/generate-runner-jitconfig-for-org", status=500, times=1)
        ground.cluster.faults.add(operation="create pods", status=403, times=1)
        async with a_child("all", "--log-level", "debug", environment=environment) as child:
            sim.webhook_url = f"{child.url}/webhook"
            run_ = sim.queue_run(REPO, [JobSpec((POOL,), 0.1) for _ in range(4)])

            async def finished() -> bool:
                return all(sim.ledger.job(job.id).status == "completed" for job in run_.jobs)

            await until(finished)
            shown = await everything_shown(child, ground)
            done = await child.end()
        assert done.code == 0
        secrets = list(planted(ground))
        assert len(secrets) >= 8
        objects = {
            name: json.dumps([change.object for change in ground.cluster.store.changes(resource, 0)])
            for name, resource in RESOURCES.items()
            if resource is not SECRETS
        }
        texts = {"stdout": done.out, "stderr": done.err + migrated.err + migrated.out, "routes": shown}
        for place, text in (texts | objects | {"database": dump(plain)}).items():
            assert leaks(text, secrets) == [], place
    assert "pod_failed" in shown  # the talkative ones are told of
