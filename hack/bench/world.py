"""The simulators as a process of their own. Prints one line of JSON with their addresses, then serves until killed.

The cluster is an API server without scheduler and kubelets: pods are stored and watched, nothing runs them.
"""

import argparse
import asyncio
import json
import random
from pathlib import Path

from controller.demo.fleet import BOARD_LABEL, ORGANIZATION_APP, make_keys
from controller.gateways.clock import SystemClock
from controller.simulators.cluster import ClusterSimulator
from controller.simulators.github import GitHubSimulator
from controller.web.serving import serving

LOOPBACK = "127.0.0.1"
TOKEN = "bench"  # noqa: S105 -- of a simulated cluster
BOARD = "bench"


async def main(directory: Path, organizations: int, boards: int, secret: str) -> None:
    """Serve both until the process is ended."""
    clock, rng = SystemClock(), random.Random(1)  # noqa: S311 -- no secret
    github = GitHubSimulator(clock, rng, secret)
    cluster = ClusterSimulator(clock, rng, token=TOKEN)
    async with (
        serving(github.app, LOOPBACK, 0, dated=False) as github_url,
        serving(cluster.app, LOOPBACK, 0) as cluster_url,
    ):
        github.base_url = github_url
        key_file, public = make_keys(directory)[ORGANIZATION_APP]
        github.add_app(ORGANIZATION_APP, public)
        accounts = []
        for number in range(organizations):
            account = github.add_organization(f"org-{number}", ORGANIZATION_APP)
            github.add_repository(f"org-{number}/code")
            accounts.append({"id": account.id, "installation_id": account.installation.id})
        for number in range(boards):
            cluster.add_board(f"board-{number:04d}", {BOARD_LABEL: BOARD})
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig(cluster_url), encoding="utf-8")
        told = {"github": github_url, "cluster": cluster_url, "kubeconfig": str(kubeconfig)}
        print(json.dumps({**told, "key_file": str(key_file), "accounts": accounts}), flush=True)
        async with github.running():
            await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--organizations", type=int, required=True)
    parser.add_argument("--boards", type=int, required=True)
    parser.add_argument("--secret", required=True)
    given = parser.parse_args()
    asyncio.run(main(given.directory, given.organizations, given.boards, given.secret))
