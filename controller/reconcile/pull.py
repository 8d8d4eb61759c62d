"""What was not pushed is pulled: deliveries that never reached us are read from GitHub's own list.

GitHub never redelivers by itself, but keeps deliveries with their payload for three days. The list is asked with
the App's JWT, which has a request limit of its own. One mechanism serves a receiver that was down, a restored
database and a home lab without a public address.
"""

from datetime import datetime, timedelta

import structlog

from controller.decide.admission import admit
from controller.decide.deliveries import BadPayload, read_delivery
from controller.domain.constants import DELIVERIES_KEPT, PULL_EVERY_PULL, PULL_EVERY_PUSH
from controller.domain.deliveries import Delivery
from controller.domain.sightings import DeliverySighting
from controller.errors import GitHubError, GitHubNotFound, GitHubRefused
from controller.ports import Clock, Deliveries, GitHub
from controller.reconcile.beside import Beside
from controller.settings import File, WebhookMode
from controller.telemetry.metrics import Metrics

log = structlog.get_logger()

WORK = "pull_deliveries"
PATIENCE = 3  # deliveries that cannot be fetched before GitHub is taken to be away
OVERLAP = timedelta(minutes=5)  # deliveries may be listed late
EVENTS = frozenset({"workflow_job", "installation", "installation_repositories"})


class PullDeliveries:
    """One step of the loop, at most every minute (15 s with `webhook: pull`)."""

    def __init__(
        self,
        file: File,
        github: GitHub,
        deliveries: Deliveries,
        clock: Clock,
        metrics: Metrics,
        beside: Beside,
    ) -> None:
        self._file = file
        self._github = github
        self._deliveries = deliveries
        self._clock = clock
        self._metrics = metrics
        self._beside = beside
        pull = file.webhook is WebhookMode.PULL
        self._every = PULL_EVERY_PULL if pull else PULL_EVERY_PUSH
        self._asked_at: datetime | None = None
        self._since: dict[str, datetime] = {}

    def next_due(self) -> datetime | None:
        """When the list is asked for next; while it is being asked, nobody need wake for it."""
        if self._asked_at is None or WORK in self._beside.under_way:
            return None
        return self._asked_at + self._every

    async def catch_up(self) -> bool:
        """Before a first iteration as leader: the rows may be older than what this process remembers of them."""
        self._since.clear()
        return await self.pull()

    async def run(self, epoch: int) -> None:
        """Have the lists read if they are due; taking in is idempotent, so no epoch is needed."""
        now = self._clock.now()
        if self._asked_at is None or now - self._asked_at >= self._every:
            self._beside.start(WORK, self.pull)

    async def pull(self) -> bool:
        """Take in what is missing, oldest first. Taking in rings the doorbell, so nobody is woken here."""
        now = self._asked_at = self._clock.now()
        for app in self._file.github.apps.values():
            try:
                await self._pull(app.app_id, now)
            except GitHubError as error:
                log.warning("deliveries.unknown", app_id=app.app_id, error=str(error))
        return False

    async def _pull(self, app_id: str, now: datetime) -> None:
        """Where the last look ended well, this one goes on; the first goes back as far as we know nothing."""
        listed = await self._list(app_id, now)
        wanted = [each for each in listed if each.event in EVENTS]
        missing = await self._deliveries.missing({each.guid for each in wanted})
        seen: set[str] = set()
        failed: list[GitHubError] = []
        for each in sorted(wanted, key=lambda each: (each.delivered_at, each.id)):
            if each.guid in missing and each.guid not in seen:
                seen.add(each.guid)
                try:
                    await self._take(app_id, each, now)
                except GitHubError as error:  # the others do not wait for it; the next pull tries it again
                    failed.append(error)
                    if len(failed) >= PATIENCE:
                        break
        if failed:
            raise failed[0]
        self._since[app_id] = now - OVERLAP

    async def _list(self, app_id: str, now: datetime) -> list[DeliverySighting]:
        """At first: all since the last event, and of those before it whatever had failed."""
        since = self._since.get(app_id)
        if since is not None:
            return list(await self._github.list_deliveries(app_id, since))
        oldest = now - DELIVERIES_KEPT
        last = await self._deliveries.last_at(app_id)
        since = max(last or oldest, oldest) - OVERLAP
        failed = await self._github.list_failed_deliveries(app_id, oldest) if last is not None else ()
        return [*failed, *await self._github.list_deliveries(app_id, since)]

    async def _take(self, app_id: str, listed: DeliverySighting, now: datetime) -> None:
        try:
            fetched = await self._github.get_delivery(app_id, listed.id)
            notice = read_delivery(fetched.event, fetched.payload)
        except (BadPayload, GitHubNotFound, GitHubRefused) as error:  # it would stand in the way for ever
            log.warning("delivery.unreadable", guid=listed.guid, error=str(error))
            return
        delivery = Delivery(fetched.guid, app_id, fetched.event, "pull", notice)
        known_app, allowed = admit(notice, app_id, self._file.apps_by_type, self._file.access.allows)
        outcome = await self._deliveries.take(delivery, known_app=known_app, allowed=allowed, now=now)
        self._metrics.deliveries_pulled_total.inc()
        log.info("delivery.pulled", guid=listed.guid, outcome=outcome.value)
