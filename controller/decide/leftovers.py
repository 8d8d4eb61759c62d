"""What is left over outside: runners without a live row, ended pods past their grace, Secrets of nobody. Pure."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta

from controller.domain.changes import Decided, DeletePod, DeleteRunner
from controller.domain.constants import ENDED_SECRET_AGE, LEFTOVER_CONFIRMATION, SECRET_SWEEP_AGE
from controller.domain.jobs import Scope
from controller.domain.sightings import PodView, Runner, Unknown
from controller.domain.views import View
from controller.domain.workers import NameRule, WorkerStatus

Leftover = tuple[Scope, int, str]  # where, runner id, name


def find_leftover_runners(
    view: View, rows: Mapping[str, WorkerStatus], names: NameRule
) -> frozenset[Leftover]:
    """Runners of ours, by their whole name, whose row is ended or missing. A busy one is nobody's leftover."""
    return frozenset(
        (scope, runner.id, runner.name)
        for scope, listed in view.runners.items()
        if not isinstance(listed, Unknown)
        for runner in listed
        if names.ours(runner.name) and not runner.busy and not _live(runner, rows, view)
    )


def _live(runner: Runner, rows: Mapping[str, WorkerStatus], view: View) -> bool:
    status = rows.get(runner.name)
    if status is None and isinstance(view.pods, Unknown):
        return True  # its pod may be there, and is adopted once it is seen
    return runner.name in view.in_flight or (status is not None and status.live)


def confirmed_leftovers(
    found: frozenset[Leftover], first_seen: Mapping[Leftover, datetime], now: datetime
) -> Iterator[DeleteRunner]:
    """Those that were seen so before, long enough ago."""
    for leftover in sorted(found, key=lambda each: each[2]):
        since = first_seen.get(leftover)
        if since is not None and now - since >= LEFTOVER_CONFIRMATION:
            scope, runner_id, name = leftover
            yield DeleteRunner(scope, runner_id, name)


def find_terminal_pods(view: View) -> Decided:
    """Ended pods of ours past the grace period in which their logs can be read."""
    if isinstance(view.pods, Unknown):
        return Decided()
    past = [
        DeletePod(name)
        for name in sorted(view.ours)
        if (pod := view.pods.pods[name]).phase.ended
        and pod.deleting_since is None
        and view.now - (pod.finished_at or pod.created_at) >= view.limits.pod_delete_grace
    ]
    return Decided(effects=tuple(past))


def find_lost_secrets(
    secrets: Mapping[str, datetime],
    pods: PodView,
    rows: Mapping[str, WorkerStatus],
    in_flight: Collection[str],
    now: datetime,
) -> list[str]:
    """Secrets of ours with neither a pod nor a live row, old enough that none is on its way."""
    return sorted(
        name
        for name, created_at in secrets.items()
        if name not in pods.pods and name not in in_flight and _nobodys(rows.get(name), now - created_at)
    )


def _nobodys(row: WorkerStatus | None, age: timedelta) -> bool:
    if row is None:
        return age >= SECRET_SWEEP_AGE
    return not row.live and age >= ENDED_SECRET_AGE
