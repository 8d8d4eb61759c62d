"""Puts the demo together, lets it run, and says how it went."""

import asyncio
import os
import random
import secrets
import tempfile
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from controller import app
from controller.demo.fleet import equip_cluster, make_keys, people_github, settings_of
from controller.demo.past import tell_past
from controller.demo.summary import summarise
from controller.demo.traffic import Traffic, trouble
from controller.demo.watchman import Watchman
from controller.errors import ConfigError
from controller.gateways.clock import ScaledClock
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.migrate import migrate
from controller.gateways.postgres.tallies import failure_counts, held_targets, job_statuses
from controller.ports import Secret
from controller.settings import Settings, parse_file
from controller.simulators.cluster import ClusterSimulator
from controller.simulators.github import GitHubSimulator
from controller.simulators.postgres import embedded_postgres
from controller.web.serving import serving

LOOPBACK = "127.0.0.1"
SEED = 20261


async def run_demo(*, speed: float, duration: timedelta | None, port: int) -> int:
    """Run the whole system until interrupted, or for so long; 1 if a job was lost."""
    clock = ScaledClock(speed)
    rng = random.Random(SEED)  # noqa: S311 -- the fleet's dice, no secret
    webhook_secret, cluster_token = secrets.token_hex(16), secrets.token_hex(16)
    admin_token = os.environ.get("SWITCHBOARD_ADMIN_TOKEN", "").strip() or secrets.token_hex(16)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="switchboard-demo-")))
        os.chmod(directory, 0o755)  # noqa: S103 -- PostgreSQL may run as another user; keys inside are 0600
        print("Starting PostgreSQL, a simulated GitHub and a simulated cluster …", flush=True)
        database_url = await stack.enter_async_context(embedded_postgres(directory / "postgres"))
        github = GitHubSimulator(clock, rng, webhook_secret)
        github_url = await stack.enter_async_context(serving(github.app, LOOPBACK, 0, dated=False))
        github.base_url = github_url
        cluster = ClusterSimulator(clock, rng, token=cluster_token)
        cluster_url = await stack.enter_async_context(serving(cluster.app, LOOPBACK, 0))
        keys = await asyncio.to_thread(make_keys, directory)
        people_github(github, keys)
        equip_cluster(cluster, github_url, rng)
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig(cluster_url), encoding="utf-8")
        await stack.enter_async_context(github.running())
        await stack.enter_async_context(cluster.running())

        mistakes: list[str] = []
        file = parse_file(settings_of(github_url, keys, port, speed), mistakes)
        if file is None:
            raise ConfigError(mistakes)
        settings = Settings(
            file=file,
            database_url=Secret(database_url),
            webhook_secrets=(Secret(webhook_secret),),
            admin_token=Secret(admin_token),
        )
        database = Database(settings.database_url, file.database.schema_, 2)
        await migrate(database, clock.now())
        await database.open()
        stack.push_async_callback(database.close)
        began = clock.now()
        await tell_past(database, github, rng, file.names, began)

        stop = asyncio.Event()
        world = app.World(clock, rng, kubeconfig)
        watchman = Watchman(github, cluster, clock, lambda: held_targets(database))
        traffic = Traffic(github, clock, rng)

        def on_serving(url: str) -> None:
            github.webhook_url = f"{url}/webhook"
            print(f"\n  Switchboard is at {url}/   ({speed:g} × real time; Ctrl-C ends it)", flush=True)
            print(f"  Sign in at {url}/login with the token {admin_token}\n", flush=True)
            for work in (traffic.run(), trouble(cluster, clock), watchman.run()):
                stack.push_async_callback(end, asyncio.create_task(work))
            if duration is not None:
                asyncio.get_running_loop().call_later(duration.total_seconds(), stop.set)

        for number in (2, 15):  # SIGINT, SIGTERM
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        code = await app.serve(
            settings, app.Parts(controller=True, receiver=True), world, stop=stop, on_serving=on_serving
        )
        lost = watchman.verdict(await job_statuses(database))
        print(summarise(list(github.ledger.jobs()), lost, await failure_counts(database, began)), flush=True)
        # Who ends it by hand has seen enough; a run of a given length is a test.
        return 1 if lost and duration is not None else code


async def end(task: asyncio.Task[None]) -> None:
    """Cancel it until it heeds: before Python 3.12 `wait_for`, in which psycopg waits, can lose a cancellation."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=1.0)
    if not task.cancelled():
        task.result()
