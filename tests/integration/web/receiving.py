"""A receiver served over HTTP, and a sender that signs as GitHub does."""

import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from starlette.applications import Starlette

from controller.domain.constants import WEBHOOK_DEADLINE
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.intake import Intake
from controller.ports import Secret
from controller.settings import File, Settings
from controller.telemetry.metrics import Metrics
from controller.web.webhook import Receiver, webhook_routes
from tests.clocks import ManualClock
from tests.payloads import CATALOGUE, LABELS, a_guid
from tests.serving import serving

SECRET, OLD_SECRET = "the secret", "the secret before it was rotated"
ORGANIZATION_APP, USER_APP = "111", "222"
DEADLINE = 60.0


def settings(**changes: Any) -> Settings:
    """Settings with both Apps and one pool; keyword arguments replace keys of the file."""
    apps = {
        "Organization": {"appId": ORGANIZATION_APP, "privateKeyFile": "/org.pem"},
        "User": {"appId": USER_APP, "privateKeyFile": "/user.pem"},
    }
    file = {
        "github": {"apps": apps},
        "pools": [{"name": "scw-em-rv1", "labels": list(LABELS), "image": "image"}],
        **changes,
    }
    return Settings(
        file=File.model_validate(file),
        database_url=Secret("unused"),
        webhook_secrets=(Secret(SECRET), Secret(OLD_SECRET)),
    )


def sign(body: bytes, secret: str = SECRET) -> str:
    """The signature header's value."""
    return "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()


@dataclass
class Sender:
    """GitHub's side: sends payloads, signed unless told otherwise."""

    client: httpx.AsyncClient
    metrics: Metrics = field(default_factory=Metrics)

    async def send(
        self,
        payload: object,
        *,
        event: str = "workflow_job",
        app: str | None = ORGANIZATION_APP,
        headers: dict[str, str | None] | None = None,
        secret: str = SECRET,
    ) -> httpx.Response:
        """Deliver a payload (bytes as they are); a header given as None is left out."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        sent: dict[str, str | None] = {
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": a_guid(),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-GitHub-Hook-Installation-Target-ID": app,
            "X-Hub-Signature-256": sign(body, secret),
            **(headers or {}),
        }
        kept = {name: value for name, value in sent.items() if value is not None}
        return await self.client.post("/webhook", content=body, headers=kept)

    def counted(self, event: str, outcome: str) -> float:
        """How often the receiver counted this."""
        labels = {"event": event, "outcome": outcome}
        return self.metrics.registry.get_sample_value("switchboard_webhook_deliveries_total", labels) or 0.0


@asynccontextmanager
async def receiving(
    database: Database, given: Settings | None = None, deadline: timedelta = WEBHOOK_DEADLINE
) -> AsyncIterator[Sender]:
    """Serve a receiver that writes to this database."""
    metrics = Metrics()
    receiver = Receiver(
        Intake(database, CATALOGUE), given or settings(), ManualClock(), metrics, deadline=deadline
    )
    async with (
        serving(Starlette(routes=list(webhook_routes(receiver)))) as url,
        httpx.AsyncClient(base_url=url, timeout=DEADLINE) as client,
    ):
        yield Sender(client, metrics)
