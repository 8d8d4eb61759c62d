"""The demo's fleet and its customers: three pools on twelve boards, organizations and personal accounts."""

import random
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controller.simulators.cluster import Behaviour, ClusterSimulator, RunnerProgram
from controller.simulators.github import GitHubSimulator, JobSpec

ORGANIZATION_APP, USER_APP = "111", "222"
RUNNER_VERSION = "2.335.0"
IMAGE = "ghcr.io/riseproject-dev/riscv-runner/runner/ubuntu-24.04:prod"
BOARD_LABEL = "riseproject.dev/board"


@dataclass(frozen=True, slots=True)
class DemoPool:
    """A kind of board, how many there are, and the labels that ask for it."""

    name: str
    boards: int
    labels: tuple[str, ...]
    share: int  # of the jobs, in per cent


POOLS = (
    DemoPool("scw-em-rv1", 6, ("ubuntu-24.04-riscv",), 52),
    DemoPool("bpi-f3", 4, ("ubuntu-24.04-riscv", "bpi-f3"), 33),
    DemoPool("pioneer", 2, ("ubuntu-24.04-riscv", "pioneer"), 15),
)
FLAKY_BOARD = "scw-em-rv1-6"
ORGANIZATIONS = {
    "acme": ("acme/kernel", "acme/widgets"),
    "llvm-riscv": ("llvm-riscv/llvm-project",),
    "rise-demo": ("rise-demo/openssl", "rise-demo/python"),
}
USERS = {"jane": ("jane/dotfiles", "jane/emulator"), "kofi": ("kofi/rustlings",)}
PRIVATE = frozenset({"acme/widgets"})
SCHEDULES = [
    {
        "name": "weekday-mornings",
        "type": "cron",
        "spec": "0 8 * * 1-5",
        "timezone": "Europe/Berlin",
        "action": "warm",
        "with": {"entity": "acme", "labels": ["ubuntu-24.04-riscv"], "runners": 2, "for": "1h"},
    },
    {
        "name": "benchmarks",
        "type": "interval",
        "spec": "2h",
        "action": "dispatch",
        "with": {"repo": "llvm-riscv/llvm-project", "workflow": "benchmarks.yml", "ref": "main"},
    },
    {"name": "tidy", "type": "cron", "spec": "0 3 * * *", "action": "prune"},
]
BENCHMARKS = [JobSpec(pool.labels, 40.0, f"bench {pool.name}") for pool in POOLS]


def repositories() -> list[str]:
    """All repositories that queue jobs."""
    return [repo for owned in (*ORGANIZATIONS.values(), *USERS.values()) for repo in owned]


def make_keys(directory: Path) -> dict[str, tuple[Path, bytes]]:
    """A private key file for each App, and the public half that GitHub knows."""
    made = {}
    for app_id in (ORGANIZATION_APP, USER_APP):
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        file = directory / f"{app_id}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        file.chmod(0o600)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        made[app_id] = (file, public)
    return made


def people_github(github: GitHubSimulator, keys: dict[str, tuple[Path, bytes]]) -> None:
    """Make the Apps, accounts and repositories; webhooks fail, double and overtake each other now and then."""
    for app_id, (_, public) in keys.items():
        github.add_app(app_id, public)
    for login, owned in ORGANIZATIONS.items():
        github.add_organization(login, ORGANIZATION_APP)
        for repo in owned:
            github.add_repository(repo, repo in PRIVATE)
    github.add_workflow("llvm-riscv/llvm-project", "benchmarks.yml", BENCHMARKS)
    for login, owned in USERS.items():
        github.add_user(login, USER_APP)
        for repo in owned:
            github.add_repository(repo)
    faults = github.faults.webhooks
    faults.fail, faults.duplicate, faults.reorder = 0.04, 0.03, 0.03


def equip_cluster(cluster: ClusterSimulator, github_url: str, rng: random.Random) -> None:
    """Join the boards; one of them often loses its runner."""
    cluster.default_program = RunnerProgram(github_url, RUNNER_VERSION)
    for pool in POOLS:
        for number in range(1, pool.boards + 1):
            name = f"{pool.name}-{number}"
            cluster.add_board(name, {BOARD_LABEL: pool.name})
            pull = timedelta(seconds=rng.uniform(1, 4))
            cluster.set_board_behaviour(name, Behaviour(pull_time=pull))


def settings_of(
    github_url: str, keys: dict[str, tuple[Path, bytes]], port: int, speed: float
) -> dict[str, Any]:
    """The settings file of the demo."""
    return {
        "github": {
            "apiUrl": github_url,
            "apps": {
                "Organization": {
                    "appId": ORGANIZATION_APP,
                    "privateKeyFile": str(keys[ORGANIZATION_APP][0]),
                },
                "User": {"appId": USER_APP, "privateKeyFile": str(keys[USER_APP][0])},
            },
        },
        "pools": [{"name": pool.name, "labels": list(pool.labels), "image": IMAGE} for pool in POOLS],
        "schedules": SCHEDULES,
        "web": {
            "listen": f"127.0.0.1:{port}",
            "contact": f"nobody, this is a demo at {speed:g} × real time: jobs, clock and the past are made up.",
        },
    }
