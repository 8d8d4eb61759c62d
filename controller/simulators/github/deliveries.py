"""Webhook delivery: signed, posted over real HTTP, and kept in the list that the deliveries API shows.

Deliveries about one job or installation leave in order, one after the other, unless a fault holds one back; those about
different ones overlap. GitHub never tries again by itself, so neither does this.
"""

import asyncio
import hashlib
import hmac
import json
import random
import ssl
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import httpx

from controller.ports import Clock
from controller.simulators.github.behaviour import Behaviour
from controller.simulators.github.faults import Faults
from controller.simulators.github.state import App, Delivery, Json
from controller.simulators.github.timers import Timers
from controller.simulators.github.world import World

OVERLAPPING = 32


@dataclass(frozen=True, slots=True)
class Message:
    """An event to tell an App of; `lane` keeps related ones in order."""

    app: App
    event: str
    payload: Json
    lane: str
    installation_id: int | None = None
    repository_id: int | None = None
    job_id: int | None = None
    guid: str = ""
    redelivery: bool = False
    doomed: bool = False  # recorded as failed, never sent

    @property
    def action(self) -> str | None:
        """What the payload says happened."""
        action = self.payload.get("action")
        return action if isinstance(action, str) else None


def sign(secret: str, body: bytes) -> str:
    """The value of X-Hub-Signature-256."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Webhooks:
    """The outgoing side. `url` None: deliveries are recorded as failed, not sent."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        rng: random.Random,
        timers: Timers,
        behaviour: Behaviour,
        faults: Faults,
        secret: str,
    ) -> None:
        self._world = world
        self._clock = clock
        self._rng = rng
        self._timers = timers
        self._behaviour = behaviour
        self._faults = faults
        self._secret = secret
        self._lanes: dict[str, deque[Message]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(OVERLAPPING)
        self._client: httpx.AsyncClient | None = None
        self.url: str | None = None
        self.check: Callable[[str, Json], None] = lambda _event, _payload: None

    def emit(self, message: Message) -> None:
        """Send an event, unless a fault has other plans for it."""
        self.check(message.event, message.payload)
        fate = self._faults.webhooks.fate(message.event, message.action, message.job_id)
        if fate.lost:
            return
        for copy in range(fate.copies):
            guid = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
            late = bool(fate.delay) or copy > 0
            own = replace(message, guid=guid, doomed=fate.failed)
            self._post(replace(own, lane=f"late-{guid}") if late else own, fate.delay)

    def redeliver(self, delivery: Delivery) -> None:
        """Try a recorded delivery again, under the same GUID."""
        message = Message(
            app=delivery.app,
            event=delivery.event,
            payload=delivery.payload,
            lane=f"again-{delivery.guid}",
            installation_id=delivery.installation_id,
            repository_id=delivery.repository_id,
            guid=delivery.guid,
            redelivery=True,
        )
        self._post(message, timedelta(0))

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send what is and will be queued until the block ends."""
        # Receivers are spoken to without TLS: an empty context saves the loading of every known authority.
        no_authorities = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Each delivery has a time limit of its own.
        async with httpx.AsyncClient(timeout=None, trust_env=False, verify=no_authorities) as client:  # noqa: S113
            self._client = client
            for lane in list(self._lanes):
                self._start(lane)
            try:
                yield
            finally:
                self._client = None
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def sent(self) -> None:
        """Wait until nothing that is due is on its way."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    @property
    def idle(self) -> bool:
        """Whether nothing that is due is on its way."""
        return not self._tasks

    def _post(self, message: Message, delay: timedelta) -> None:
        if delay:
            self._timers.at(self._clock.now() + delay, lambda: self._post(message, timedelta(0)))
            return
        queue = self._lanes.get(message.lane)
        if queue is not None:
            queue.append(message)
            return
        self._lanes[message.lane] = deque([message])
        self._start(message.lane)

    def _start(self, lane: str) -> None:
        if self._client is None:
            return
        task = asyncio.get_running_loop().create_task(self._drain(self._client, lane))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drain(self, client: httpx.AsyncClient, lane: str) -> None:
        queue = self._lanes[lane]
        while queue:
            async with self._slots:
                await self._attempt(client, queue[0])
            queue.popleft()
        del self._lanes[lane]

    async def _attempt(self, client: httpx.AsyncClient, message: Message) -> None:
        delivery = self._record(message)
        body = json.dumps(message.payload, separators=(",", ":")).encode()
        delivery.request_headers = self._headers(message, body)
        if self.url is None or message.doomed:
            delivery.status, delivery.status_code = "failed to connect to host", 502
        else:
            try:
                async with asyncio.timeout(self._behaviour.answer_within.total_seconds()):
                    answer = await client.post(self.url, content=body, headers=delivery.request_headers)
            except TimeoutError:
                delivery.status, delivery.status_code = "timed out", 504
            except httpx.HTTPError:
                delivery.status, delivery.status_code = "failed to connect to host", 502
            else:
                delivery.status_code = answer.status_code
                delivery.status = "OK" if delivery.ok else f"Invalid HTTP Response: {answer.status_code}"
                delivery.duration = answer.elapsed.total_seconds()
                delivery.response_headers = dict(answer.headers)
                delivery.response_body = answer.text
        delivery.delivered_at = self._clock.now()

    def _record(self, message: Message) -> Delivery:
        now = self._clock.now()
        for oldest in list(self._world.deliveries.values()):
            if now - oldest.created_at <= self._behaviour.deliveries_kept:
                break
            del self._world.deliveries[oldest.id]
        delivery = Delivery(
            id=self._world.next_id("delivery"),
            guid=message.guid,
            app=message.app,
            event=message.event,
            action=message.action,
            installation_id=message.installation_id,
            repository_id=message.repository_id,
            payload=message.payload,
            created_at=now,
            redelivery=message.redelivery,
        )
        self._world.deliveries[delivery.id] = delivery
        return delivery

    def _headers(self, message: Message, body: bytes) -> dict[str, str]:
        return {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/0000000",
            "X-GitHub-Delivery": message.guid,
            "X-GitHub-Event": message.event,
            "X-GitHub-Hook-ID": str(message.app.hook_id),
            "X-GitHub-Hook-Installation-Target-ID": str(message.app.id),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-Hub-Signature-256": sign(self._secret, body),
        }
