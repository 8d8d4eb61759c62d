"""The parts of the simulated GitHub, wired together; handlers and control commands are given this."""

import random
from collections.abc import Callable
from datetime import datetime

from controller.ports import Clock
from controller.simulators.github.assignment import Assignment
from controller.simulators.github.auth import Authentication
from controller.simulators.github.behaviour import Behaviour
from controller.simulators.github.deliveries import Message, Webhooks
from controller.simulators.github.faults import Faults
from controller.simulators.github.jobs import Jobs
from controller.simulators.github.ledger import Ledger
from controller.simulators.github.limits import Limits
from controller.simulators.github.payloads import webhooks as webhook_payloads
from controller.simulators.github.request_log import RequestLog
from controller.simulators.github.runners import Runners
from controller.simulators.github.state import App, Installation, Job, Json
from controller.simulators.github.timers import Timers
from controller.simulators.github.world import World

# method, path template, status, request body, response body
Validator = Callable[[str, str, int, object, object], None]
WebhookValidator = Callable[[str, Json], None]


class Platform:
    """State and behaviour, without HTTP."""

    def __init__(self, clock: Clock, rng: random.Random, webhook_secret: str) -> None:
        self.clock = clock
        self.rng = rng
        self.base_url = "http://127.0.0.1"
        self.behaviour = Behaviour()
        self.world = World()
        self.timers = Timers(clock)
        self.faults = Faults(rng)
        self.limits = Limits(clock)
        self.requests = RequestLog()
        self.ledger = Ledger(self.world)
        self.violations: list[str] = []
        self.validator: Validator | None = None
        self.webhook_validator: WebhookValidator | None = None
        self.auth = Authentication(self.world, clock, rng, self.behaviour)
        self.webhooks = Webhooks(
            self.world, clock, rng, self.timers, self.behaviour, self.faults, webhook_secret
        )
        self.webhooks.check = self._check_webhook
        self.assignment = Assignment(clock, rng, self.timers, self.behaviour)
        self.jobs = Jobs(
            self.world, clock, rng, self.timers, self.behaviour, self.assignment, self.announce_job
        )
        self.runners = Runners(
            self.world, clock, rng, self.timers, self.behaviour, self.assignment, self.jobs
        )

    def now(self) -> datetime:
        """The clock's time."""
        return self.clock.now()

    def announce_job(self, job: Job, action: str) -> None:
        """Tell every App that is installed at the job's owner, unless it is suspended there."""
        for installation in job.repository.owner.installations.values():
            if installation.suspended_at is not None or installation.deleted_at is not None:
                continue
            payload = webhook_payloads.workflow_job(
                self.base_url, job, action, installation, absent_is_zero=self.behaviour.absent_runner_is_zero
            )
            self.webhooks.emit(
                Message(
                    app=installation.app,
                    event="workflow_job",
                    payload=payload,
                    lane=f"job-{job.id}-{installation.app.id}",
                    installation_id=installation.id,
                    repository_id=job.repository.id,
                    job_id=job.id,
                )
            )

    def announce_installation(self, installation: Installation, action: str) -> None:
        """Tell the App what became of its installation."""
        self.webhooks.emit(
            Message(
                app=installation.app,
                event="installation",
                payload=webhook_payloads.installation(self.base_url, installation, action),
                lane=f"installation-{installation.id}",
                installation_id=installation.id,
            )
        )

    def ping(self, app: App) -> None:
        """Send the event that GitHub sends when a hook is set up."""
        url = self.webhooks.url or "https://example.com/webhook"
        payload = webhook_payloads.ping(self.base_url, app, url)
        self.webhooks.emit(Message(app=app, event="ping", payload=payload, lane=f"ping-{app.id}"))

    def check_answer(self, method: str, template: str, status: int, request: object, answer: object) -> None:
        """Have the validator judge an answer; a violation is kept and raised."""
        if self.validator is None:
            return
        try:
            self.validator(method, template, status, request, answer)
        except Exception as error:
            self.violations.append(f"{method} {template} {status}: {error}")
            raise

    def _check_webhook(self, event: str, payload: Json) -> None:
        if self.webhook_validator is None:
            return
        try:
            self.webhook_validator(event, payload)
        except Exception as error:
            self.violations.append(f"webhook {event} {payload.get('action')}: {error}")
            raise
