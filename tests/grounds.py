"""What a child process stands on: a served GitHub and cluster, a settings file, and the environment to run in."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from controller.gateways.clock import SystemClock
from controller.simulators.cluster import Behaviour, ClusterSimulator, RunnerProgram
from tests.serving import serving
from tests.systems import BOARD_LABEL, a_pool
from tests.worlds import ORGANIZATION_APP, USER_APP, GitHubWorld, a_github

POOL = "rv1"
HOOK_SECRET = "planted-webhook-secret-83b0d2"  # one word: spaces separate several
CLUSTER_TOKEN = "planted-cluster-token-6f1c9a"
SOON = timedelta(milliseconds=20)
QUICK = Behaviour(pull_time=SOON, start_time=SOON, stop_time=SOON)


@dataclass(frozen=True, slots=True)
class Ground:
    """Everything outside but the database."""

    github: GitHubWorld
    cluster: ClusterSimulator
    environment: dict[str, str]


@asynccontextmanager
async def a_ground(
    database_url: str, directory: Path, *, boards: int = 2, **more: Any
) -> AsyncIterator[Ground]:
    """Prepare it, on the machine's clock; `more` goes into the settings."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        github = await stack.enter_async_context(a_github(clock, HOOK_SECRET))
        cluster = ClusterSimulator(clock, random.Random(3), token=CLUSTER_TOKEN)
        cluster.default_program = RunnerProgram(github.base_url, "2.335.0")
        for number in range(1, boards + 1):
            cluster.add_board(f"{POOL}-{number}", {BOARD_LABEL: POOL})
            cluster.set_board_behaviour(f"{POOL}-{number}", QUICK)
        url = await stack.enter_async_context(serving(cluster.app))
        await stack.enter_async_context(cluster.running())
        kubeconfig, config = directory / "kubeconfig", directory / "settings.yaml"
        kubeconfig.write_text(cluster.kubeconfig(url), encoding="utf-8")
        kinds = {"Organization": ORGANIZATION_APP, "User": USER_APP}
        apps = {kind: {"appId": app, "privateKeyFile": str(github.apps[app])} for kind, app in kinds.items()}
        settings = {
            "github": {"apiUrl": github.base_url, "apps": apps},
            "pools": [a_pool(POOL)],
            "web": {"listen": "127.0.0.1:0"},
            **more,
        }
        config.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
        environment = {
            "DATABASE_URL": database_url,
            "GITHUB_WEBHOOK_SECRET": github.webhook_secret,
            "KUBECONFIG": str(kubeconfig),
            "SWITCHBOARD_CONFIG": str(config),
        }
        yield Ground(github, cluster, environment)
