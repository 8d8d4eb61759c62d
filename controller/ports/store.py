"""The store as the core sees it. Every write checks the leader's epoch in its own transaction.

Methods raise only StoreError and its children; LeadershipLost means that nothing was written.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from controller.domain.auth import AuthAttempt
from controller.domain.boards import Board
from controller.domain.changes import JobChange, WorkerChange
from controller.domain.deliveries import Delivery, Outcome, Taken
from controller.domain.endings import Ending
from controller.domain.heartbeats import Beat, PoolSnapshot
from controller.domain.holds import Hold
from controller.domain.jobs import Home, Job, Scope
from controller.domain.reasons import Reason
from controller.domain.reservations import Reservation, Reserved
from controller.domain.sightings import DeliverySighting
from controller.domain.supply import Supply
from controller.domain.workers import Worker, WorkerStatus


class Deliveries(Protocol):
    """What the receiver and the pull of missed deliveries write."""

    async def take(self, delivery: Delivery, *, known_app: bool, allowed: bool, now: datetime) -> Outcome:
        """Record one delivery and what follows from it; a second time changes nothing."""
        ...

    async def missing(self, guids: Collection[str]) -> frozenset[str]:
        """Which of these deliveries have not been taken in."""
        ...

    async def newest(self, app_id: str) -> Taken | None:
        """The delivery of an App that was taken in last."""
        ...

    async def give_up(self, app_id: str, listed: DeliverySighting, error: str, now: datetime) -> None:
        """Leave an event: GitHub lists this delivery but does not hand it out, so it is looked for no more."""
        ...


class Jobs(Protocol):
    """Jobs as the reconciler reads and writes them."""

    async def due(self, now: datetime, limit: int) -> list[Job]:
        """Active jobs that have been silent for too long, the longest overdue first."""
        ...

    async def next_due(self, now: datetime) -> datetime | None:
        """When the next job's back-off ends."""
        ...

    async def at_work(self, job_ids: Collection[int]) -> frozenset[int]:
        """Which of these jobs run on a worker of ours that has not ended."""
        ...

    async def suspended(self, installations: Collection[int]) -> frozenset[int]:
        """Which of these installations were last heard of as suspended or gone."""
        ...

    async def apply(self, changes: Sequence[JobChange], epoch: int, now: datetime) -> list[JobChange]:
        """Write what sync_jobs concluded; the changes that really moved a job."""
        ...

    async def rescope(self, job_ids: Sequence[int], installation_id: int, epoch: int, now: datetime) -> None:
        """The App was installed anew: these active jobs belong to that installation."""
        ...

    async def store_skips(
        self, skips: Sequence[tuple[int, str | None, dict[str, Any], str | None]], epoch: int, now: datetime
    ) -> None:
        """Keep why each of these pending jobs gets no worker now (None: it gets one)."""
        ...


class Unheard(Protocol):
    """Jobs whose webhooks were lost for good."""

    async def homes(self, since: datetime) -> list[Home]:
        """The repositories that had a job since then."""
        ...

    async def active_runs(self, run_ids: Collection[int]) -> frozenset[int]:
        """Which of these runs have a job that has not ended."""
        ...

    async def known(self, job_ids: Collection[int]) -> frozenset[int]:
        """Which of these jobs have a row."""
        ...

    async def learn(self, jobs: Sequence[Job], epoch: int, now: datetime) -> int:
        """Take these in as if their webhooks had come; how many were new."""
        ...


class AuthAttempts(Protocol):
    """How authentications went."""

    async def keep(self, attempts: Iterable[AuthAttempt], epoch: int, now: datetime) -> None:
        """A failure leaves an event, and so does the success that ends it."""
        ...


class LockedWorkers(Protocol):
    """The workers table while this process holds its EXCLUSIVE lock."""

    async def rows(self, also: Collection[str]) -> list[Worker]:
        """Live rows, ended ones whose pod is not known to be gone, and those of these names."""
        ...

    async def statuses(self, names: Collection[str]) -> Mapping[str, WorkerStatus]:
        """The status of each of these that has a row."""
        ...

    async def apply(self, changes: Sequence[WorkerChange], now: datetime) -> list[bool]:
        """Write these changes; False for each that a row has moved past or would not take."""
        ...


class Workers(Protocol):
    """Workers as the reconciler reads and writes them."""

    def locked(self, epoch: int) -> AbstractAsyncContextManager[LockedWorkers]:
        """One transaction that holds LOCK TABLE workers IN EXCLUSIVE MODE; no network call belongs into it."""
        ...

    async def statuses(self, names: Collection[str]) -> Mapping[str, WorkerStatus]:
        """The status of each of these that has a row."""
        ...

    async def scopes(self, since: datetime) -> frozenset[Scope]:
        """Where runners were registered since then."""
        ...

    async def failed_scopes(self, since: datetime) -> frozenset[Scope]:
        """Where workers have failed since then, so that their runners may have stayed behind."""
        ...

    async def reserve(self, orders: Sequence[Reservation], epoch: int, now: datetime) -> Reserved:
        """Insert these rows and commit; says which were written and which names are taken already."""
        ...

    async def note_runner(
        self, name: str, group_id: int, runner_id: int, epoch: int, now: datetime
    ) -> frozenset[str]:
        """The runner is registered; says which boards are held by now."""
        ...

    async def note_pod(self, name: str, create_rv: int, epoch: int, now: datetime) -> None:
        """The pod is created."""
        ...

    async def fail(
        self, name: str, reason: Reason, info: dict[str, Any], *, own_fault: bool, epoch: int, now: datetime
    ) -> bool:
        """End a live worker as failed and count it on the job it was made for; False if it had ended."""
        ...

    async def drop_intent(self, name: str, epoch: int, now: datetime) -> None:
        """GitHub keeps the runner: it is busy, so the worker is left alone."""
        ...

    async def keep_report(self, name: str, info: dict[str, Any], epoch: int, now: datetime) -> None:
        """Add what a failed worker's pod told."""
        ...


class Moves(Protocol):
    """Rows that follow an owner who has moved."""

    async def move(self, old: Scope, new: Scope, epoch: int, now: datetime) -> None:
        """Give the live rows of an installation the owner's present name and installation."""
        ...


class Boards(Protocol):
    """What pages know of the boards."""

    async def write(self, boards: Sequence[Board], gone: Collection[str], epoch: int, now: datetime) -> None:
        """Keep these boards as they are now, and forget those that are gone."""
        ...

    async def known(self) -> frozenset[str]:
        """The nodes that have a row."""
        ...


class Breakers(Protocol):
    """What the breaker reads and writes."""

    async def endings(self, since: datetime, images: Mapping[str, str]) -> list[Ending]:
        """Of the workers that ended since then, or live and work, those that say how boards and pools do.

        Newest first; `images` are those that the pools have now.
        """
        ...

    async def keep(self, holds: Sequence[Hold], epoch: int, now: datetime) -> None:
        """Make the breaker's holds exactly these."""
        ...


class Stuck(Protocol):
    """Rows that nothing else would move on soon."""

    async def look_now(self, before: datetime, epoch: int, now: datetime) -> list[int]:
        """Have GitHub asked about the running jobs whose worker ended before then; which they are."""
        ...

    async def pull_back(self, latest: datetime, epoch: int, now: datetime) -> int:
        """Take back what was put off beyond `latest`, and times of live workers to come; how many rows were."""
        ...


class Heartbeats(Protocol):
    """What a heartbeat reads and writes."""

    async def workers(self) -> list[Worker]:
        """The workers that may be seen."""
        ...

    async def beat(
        self, beats: Sequence[Beat], pools: Sequence[PoolSnapshot], epoch: int, now: datetime
    ) -> None:
        """Update the live workers in place and append a row for each pool."""
        ...


class Retention(Protocol):
    """What retention removes, batch by batch; each call says how many rows it took."""

    async def forget_events(self, before: datetime, epoch: int) -> int:
        """Remove events from before then, but for those of installations."""
        ...

    async def forget_occurrences(self, before: datetime, epoch: int) -> int:
        """Remove occurrences that ended before then, but for the newest of each schedule."""
        ...

    async def forget_snapshots(self, before: datetime, epoch: int) -> int:
        """Remove snapshots from before then."""
        ...

    async def forget_failure_logs(self, before: datetime, epoch: int) -> int:
        """Remove log lines and events of workers that failed before then."""
        ...

    async def forget_holds(self, before: datetime, epoch: int) -> int:
        """Remove pauses and drains that ended before then."""
        ...


class Demand(Protocol):
    """What demand_match reads."""

    async def read(self, now: datetime) -> Supply:
        """Pending jobs, workers, holds and warm windows, as of one moment."""
        ...
