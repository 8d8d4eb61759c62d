"""What was not pushed is pulled: deliveries that never reached us are read from GitHub's own list.

GitHub never redelivers by itself, but keeps deliveries with their payload for three days. The list is asked with
the App's JWT, which has a request limit of its own. One mechanism serves a receiver that was down, a restored
database and a home lab without a public address. What GitHub lists but does not hand out stands in nobody's way.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from datetime import datetime, timedelta

import structlog

from controller.decide.admission import admit
from controller.decide.budgets import back_at, repair_allowed
from controller.decide.deliveries import BadPayload, read_delivery
from controller.decide.pace import is_time
from controller.domain.constants import DELIVERIES_KEPT, PULL_EVERY_PULL, PULL_EVERY_PUSH
from controller.domain.deliveries import Delivery
from controller.domain.sightings import DeliverySighting
from controller.errors import GitHubError, GitHubNotFound, GitHubRefused, RateLimited
from controller.ports import Clock, Deliveries, GitHub
from controller.reconcile.beside import Beside
from controller.reconcile.stubborn import Stubborn
from controller.settings import File, WebhookMode
from controller.telemetry.metrics import Metrics

log = structlog.get_logger()

WORK = "pull_deliveries"
BATCH = 500  # deliveries that are listed before those missing are taken in
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
        self._first_since: dict[str, datetime] = {}
        self._newest: dict[str, str] = {}
        self._stubborn: defaultdict[str, Stubborn] = defaultdict(Stubborn)

    def next_due(self) -> datetime | None:
        """When the list is asked for next; while it is being asked, nobody need wake for it."""
        if self._asked_at is None or WORK in self._beside.under_way:
            return None
        return self._asked_at + self._every

    async def catch_up(self) -> bool:
        """Before a first iteration as leader: the rows may be older than what this process remembers of them."""
        self._since.clear()
        self._first_since.clear()
        return await self.pull()

    async def run(self, epoch: int) -> None:
        """Have the lists read if they are due; taking in is idempotent, so no epoch is needed."""
        now = self._clock.now()
        if is_time(self._asked_at, self._every, now):
            self._beside.start(WORK, self.pull)

    async def pull(self) -> bool:
        """Take in what is missing. Taking in rings the doorbell, so nobody is woken here."""
        now = self._asked_at = self._clock.now()
        for app in self._file.github.apps.values():
            try:
                await self._pull(app.app_id, now)
            except GitHubError as error:
                log.warning("deliveries.unknown", app_id=app.app_id, error=str(error))
        return False

    async def _pull(self, app_id: str, now: datetime) -> None:
        """Where the last look ended well, this one goes on; the first goes back as far as we know nothing.

        What was listed is taken in before the next is asked for, so that a look which is cut short was not for nothing.
        """
        stubborn, failed = self._stubborn[app_id], list[GitHubError]()
        missing: set[str] = set()
        again: list[DeliverySighting] = []  # tried after all others
        async with aclosing(self._batches(app_id, now)) as batches:
            async for listed in batches:
                wanted = {each.guid: each for each in listed if each.event in EVENTS}
                news = (await self._deliveries.missing(wanted.keys())) - missing
                missing |= news
                again += [wanted[guid] for guid in news if stubborn.knows(guid)]
                await self._take_all(
                    app_id, [wanted[guid] for guid in news if not stubborn.knows(guid)], failed, now
                )
        await self._take_all(app_id, again, failed, now)
        stubborn.keep(missing)
        if failed:
            raise failed[0]
        self._since[app_id] = now - OVERLAP
        self._first_since.pop(app_id, None)

    async def _take_all(
        self, app_id: str, news: Iterable[DeliverySighting], failed: list[GitHubError], now: datetime
    ) -> None:
        """Oldest first. One that fails holds up none of the others, but several mean that GitHub is away."""
        stubborn = self._stubborn[app_id]
        for each in sorted(news, key=stubborn.turn):
            if stubborn.given_up(each.guid):
                continue
            self._leave_some(app_id)
            try:
                await self._take(app_id, each, now)
            except RateLimited:
                raise
            except GitHubError as error:  # the next pull tries it again
                failed.append(error)
                if stubborn.failed(each.guid, now).too_many:
                    await self._give_up(app_id, each, error, now)
                if len(failed) >= PATIENCE:
                    raise failed[0] from None

    def _leave_some(self, app_id: str) -> None:
        """Pulling is repair: of what an App may ask in an hour it leaves enough for the tokens of its installations."""
        budget, now = self._github.app_budget(app_id), self._clock.now()
        if not repair_allowed(budget, now):
            until = back_at(budget, now) or now
            raise RateLimited(f"App {app_id} has few requests left, which are kept for tokens", until=until)

    async def _batches(self, app_id: str, now: datetime) -> AsyncGenerator[list[DeliverySighting], None]:
        """Some pages at once, so that what came in an order is mostly taken in that order."""
        batch: list[DeliverySighting] = []
        async with aclosing(self._pages(app_id, now)) as pages:
            self._leave_some(app_id)
            async for page in pages:
                batch += page
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
                self._leave_some(app_id)
        yield batch

    async def _pages(self, app_id: str, now: datetime) -> AsyncGenerator[tuple[DeliverySighting, ...], None]:
        """At first, until a look ended well: all since the last event, and of those before it whatever had failed."""
        oldest = now - DELIVERIES_KEPT
        newest = await self._deliveries.newest(app_id)
        if await self._went_back(app_id):
            log.warning("database.went_back", app_id=app_id)
            self._since.pop(app_id, None)
            self._first_since[app_id] = oldest  # the last event may have come after what is missing
        if newest is not None:
            self._newest[app_id] = newest.guid
        since = self._since.get(app_id)
        if since is None:
            # Kept until the look has ended well: whatever it takes in becomes the last event.
            last = newest.at if newest is not None else oldest
            since = self._first_since.setdefault(app_id, max(last, oldest) - OVERLAP)
            if newest is not None:
                async with aclosing(self._github.pages_of_failed_deliveries(app_id, oldest)) as failed:
                    async for page in failed:
                        yield page
        async with aclosing(self._github.pages_of_deliveries(app_id, since)) as pages:
            async for page in pages:
                yield page

    async def _went_back(self, app_id: str) -> bool:
        """Whether a delivery that had been taken in is so no more: the database was restored under us."""
        known = self._newest.pop(app_id, None)
        return known is not None and known in await self._deliveries.missing({known})

    async def _give_up(
        self, app_id: str, listed: DeliverySighting, error: GitHubError, now: datetime
    ) -> None:
        log.warning("delivery.given_up", guid=listed.guid, event_name=listed.event, error=str(error))
        await self._deliveries.give_up(app_id, listed, str(error), now)

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
