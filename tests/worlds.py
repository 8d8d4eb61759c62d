"""Worlds that integration tests start from: a served GitHub with two Apps, an organization and a person."""

import random
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from controller.domain.jobs import Entity, EntityType, Scope
from controller.ports import Clock
from controller.simulators.github import GitHubSimulator
from tests.contract.github.validation import strict_validator, strict_webhook_validator
from tests.serving import LOOPBACK, serving

WEBHOOK_SECRET = "It's a Secret to Everybody"
ORGANIZATION_APP, USER_APP = "111", "222"
SEED = 7


@cache
def rsa_key() -> tuple[bytes, bytes]:
    """A private key and its public half as PEM, one pair for the whole run: making one takes long."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public


def plain_http() -> httpx.AsyncHTTPTransport:
    """A transport to loopback: no proxies, and no authorities to load, which takes longer than most tests."""
    return httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


@dataclass(frozen=True, slots=True)
class GitHubWorld:
    """A GitHub to speak to, and what is needed to do so; `sim` changes and questions it from inside."""

    sim: GitHubSimulator
    base_url: str
    apps: Mapping[str, Path]  # App id → private key file
    webhook_secret: str

    def scope(self, name: str) -> Scope:
        """Where runners are registered: of an organization (`acme`) or of a repository (`jane/one`)."""
        login, _, repo = name.partition("/")
        account = self.sim.world.accounts[login.lower()]
        return Scope(
            app_id=str(account.installation.app.id),
            installation_id=account.installation.id,
            entity=Entity(account.id, account.login, EntityType(account.type)),
            repo=name if repo else None,
        )


@asynccontextmanager
async def a_github(
    clock: Clock, webhook_secret: str = WEBHOOK_SECRET, host: str = LOOPBACK
) -> AsyncIterator[GitHubWorld]:
    """Serve acme (App 111: acme/widgets) and jane (App 222: jane/one, jane/two), strictly validated.

    No webhook goes anywhere until `sim.webhook_url` is set. Time-driven things follow the clock: with a manual
    one, `await clock.advance(…)` and then `await sim.settle()`.
    """
    sim = GitHubSimulator(clock, random.Random(SEED), webhook_secret)
    sim.validator, sim.webhook_validator = strict_validator(), strict_webhook_validator()
    private, public = rsa_key()
    with tempfile.TemporaryDirectory() as folder:
        keys = {app_id: Path(folder) / f"{app_id}.pem" for app_id in (ORGANIZATION_APP, USER_APP)}
        for app_id, file in keys.items():
            file.write_bytes(private)
            sim.add_app(app_id, public)
        async with serving(sim.app, host) as base_url:
            sim.base_url = base_url
            sim.add_organization("acme", ORGANIZATION_APP)
            sim.add_user("jane", USER_APP)
            for name in ("acme/widgets", "jane/one", "jane/two"):
                sim.add_repository(name)
            async with sim.running():
                await sim.settle()  # the two `installation created` events, which nobody hears
                yield GitHubWorld(sim, base_url, keys, webhook_secret)
    assert not sim.violations, sim.violations
