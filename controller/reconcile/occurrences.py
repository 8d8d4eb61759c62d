"""Carries out the occurrences that need the outside: warm windows are opened, workflows started, old rows pruned.

    claim and lease ─▶ whose App? ─▶ unanswered request? look ─▶ previous run over? ─▶ note ─▶ send ─▶ link the run

The request is noted before it is sent, together with the runs that are there already. A crash or a lost answer anywhere
behind that note leads the next attempt to look for the run first, so the workflow is started once. Ours is the run that
was not there before, that our App's bot started, and that no other occurrence has: two requests of ours for the same
workflow are never open at once.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

import structlog

from controller.decide.dispatch import (
    TryAgain,
    advice,
    advice_when_suspended,
    after_attempt,
    after_giving_up,
    may_send,
    pick_run,
    search_span,
    span_before,
)
from controller.domain.constants import RUN_LOOKED_FOR_AFTER, RUNS_UNDER_WAY
from controller.domain.jobs import Scope
from controller.domain.schedules import (
    Action,
    Occurrence,
    OccurrenceStatus,
    ScheduleSkip,
    StartedRun,
    window_end,
)
from controller.errors import (
    TEXT_LIMIT,
    GitHubError,
    GitHubForbidden,
    GitHubNotFound,
    GitHubRefused,
    InstallationGone,
    InstallationSuspended,
    RateLimited,
    clip,
)
from controller.ports import Clock, GitHub
from controller.ports.schedules import Occurrences
from controller.reconcile.targets import Targets, UnknownTarget
from controller.settings import File
from controller.telemetry.metrics import Metrics
from controller.telemetry.redaction import redact

log = structlog.get_logger()

REFUSALS = (GitHubForbidden, GitHubNotFound, GitHubRefused)
PREDECESSOR_EVERY = timedelta(minutes=1)
RIVAL_EVERY = timedelta(seconds=5)  # two requests for one workflow that were begun together


class OccurrenceWork:
    """What is done beside the loop for one occurrence after the other."""

    def __init__(
        self,
        file: File,
        rows: Occurrences,
        github: GitHub,
        prune: Callable[[int], Awaitable[object]],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._rows = rows
        self._github = github
        self._forget = prune
        self._clock = clock
        self._metrics = metrics
        self._in_hand: set[int] = set()
        self._targets = Targets(file, github, rows, clock)
        self._actions: Mapping[Action, Callable[[Occurrence, int], Awaitable[None]]] = {
            Action.WARM: self._warm,
            Action.DISPATCH: self._dispatch,
            Action.PRUNE: self._prune,
        }

    async def work(self, epoch: int) -> bool:
        """Carry out all that are ripe; True if there were any."""
        found = False
        while (occurrence := await self._rows.claim(epoch, self._clock.now())) is not None:
            found = True
            self._in_hand.add(occurrence.id)
            try:
                await self._carry_out(occurrence, epoch)
            finally:
                self._in_hand.discard(occurrence.id)
        return found

    @property
    def in_hand(self) -> frozenset[int]:
        """The occurrences that are carried out here just now; however late it is, nobody else may take them."""
        return frozenset(self._in_hand)

    async def _carry_out(self, occurrence: Occurrence, epoch: int) -> None:
        try:
            await self._actions[occurrence.action](occurrence, epoch)
        except UnknownTarget as error:
            await self._fail(occurrence, str(error), epoch)
        except RateLimited as error:
            await self._later(occurrence, error.until, str(error), epoch, counts=False)
        except GitHubError as error:
            await self._failed_attempt(occurrence, error, epoch, sent=occurrence.sent_at is not None)

    async def _warm(self, occurrence: Occurrence, epoch: int) -> None:
        now, given = self._clock.now(), occurrence.arguments
        until = window_end(given, occurrence.due_at)
        if until is None or until <= now:
            await self._complete(occurrence, "its window was over before it could begin", epoch)
            return
        scope = await self._targets.find(given["entity"], given.get("repo"))
        await self._rows.open_window(occurrence, scope, until, epoch, self._clock.now())
        log.info("schedule.warming", schedule=occurrence.schedule, until=until.isoformat())

    async def _prune(self, occurrence: Occurrence, epoch: int) -> None:
        await self._forget(epoch)
        await self._complete(occurrence, "what is older than the settings keep is forgotten", epoch)

    async def _dispatch(self, occurrence: Occurrence, epoch: int) -> None:
        given = occurrence.arguments
        repo = given["repo"]
        scope = await self._targets.find(repo.partition("/")[0], repo)
        try:
            try:
                await self._dispatch_to(scope, occurrence, epoch)
            except InstallationGone:  # installed anew since the last job: the id is another one
                await self._dispatch_to(await self._targets.ask(scope.entity.name, repo), occurrence, epoch)
        except REFUSALS as error:
            await self._refused(occurrence, error, epoch)

    async def _refused(self, occurrence: Occurrence, error: GitHubError, epoch: int) -> None:
        """What GitHub refuses will be refused again, whichever request met it; but not for a key, or a token, alone."""
        if error.status in (None, 401) or occurrence.result is not None:
            await self._failed_attempt(occurrence, error, epoch, sent=occurrence.sent_at is not None)
            return
        given = occurrence.arguments
        if isinstance(error, InstallationSuspended):
            todo = advice_when_suspended(given["repo"])
        else:
            todo = advice(error.status, given["repo"], given["workflow"], given["ref"])
        # An earlier request may still be unanswered; without one, nothing of this occurrence is to be looked for.
        text = clip(redact(f"{todo} {error}"))
        await self._fail(occurrence, text, epoch, refused=occurrence.sent_at is None)

    async def _dispatch_to(self, scope: Scope, occurrence: Occurrence, epoch: int) -> None:
        if await self._found(scope, occurrence, epoch):
            return
        if occurrence.result is not None or not may_send(occurrence):
            await self._not_found(occurrence, epoch)
            return
        other = await self._under_way(scope, occurrence, epoch) if occurrence.sent_at is None else None
        if other is not None:
            if (
                occurrence.caught_up or other.due_at > occurrence.due_at
            ):  # behind a later one: retried by hand
                at = self._clock.now() + PREDECESSOR_EVERY
                await self._later(occurrence, at, "waits for another run", epoch, counts=False)
            elif await self._rows.skip(occurrence, ScheduleSkip.ALREADY_RUNNING, epoch, self._clock.now()):
                self._count(OccurrenceStatus.SKIPPED)
            return
        await self._send(scope, occurrence, epoch)

    async def _send(self, scope: Scope, occurrence: Occurrence, epoch: int) -> None:
        given = occurrence.arguments
        repo, workflow, ref = given["repo"], given["workflow"], given["ref"]
        sent = occurrence.sent_at is not None
        try:
            before = () if sent else await self._runs(scope, occurrence, span_before(self._clock.now()))
            ids = [run.run_id for run in before]
            if not await self._rows.note_sent(occurrence, ids, epoch, self._clock.now()):
                at = self._clock.now() + RIVAL_EVERY
                await self._later(
                    occurrence, at, "waits for another start of the workflow", epoch, counts=False
                )
                return
            sent = True
            run = await self._github.dispatch_workflow(scope, repo, workflow, ref, given.get("inputs", {}))
        except (RateLimited, *REFUSALS):
            raise
        except GitHubError as error:
            await self._failed_attempt(occurrence, error, epoch, sent=sent)
            return
        if run is None:
            result = f"started; GitHub did not say which run of {workflow} in {repo}"
            at = self._clock.now() + RUN_LOOKED_FOR_AFTER
            await self._rows.look_for_run(occurrence, result, at, epoch, self._clock.now())
            return
        await self._rows.complete(occurrence, run.html_url, run, epoch, self._clock.now())
        self._done(occurrence, run.html_url)

    async def _not_found(self, occurrence: Occurrence, epoch: int) -> None:
        """There is no run, and nothing may be sent: one that GitHub said it started comes late, another never."""
        if occurrence.result is not None:
            await self._try_again(occurrence, occurrence.result, epoch, sent=True)
            return
        text = occurrence.error or "GitHub never answered."
        await self._fail(occurrence, _advised(text, occurrence, sent=True), epoch)

    async def _found(self, scope: Scope, occurrence: Occurrence, epoch: int) -> bool:
        """Whether the run of an earlier, unanswered request is there; then it is linked."""
        span = search_span(occurrence, self._clock.now())
        if span is None:
            return False
        runs = await self._runs(scope, occurrence, span)
        if not runs:
            return False
        taken = await self._rows.linked([run.run_id for run in runs])
        bot = await self._github.bot_login(scope.app_id)
        run = pick_run(runs, occurrence.arguments["workflow"], bot, taken.union(occurrence.runs_before))
        if run is None:
            return False
        await self._rows.complete(occurrence, run.html_url, run, epoch, self._clock.now())
        self._done(occurrence, run.html_url)
        return True

    async def _runs(
        self, scope: Scope, occurrence: Occurrence, between: tuple[datetime, datetime]
    ) -> tuple[StartedRun, ...]:
        given = occurrence.arguments
        branch = given["ref"].removeprefix("refs/heads/").removeprefix("refs/tags/")
        return await self._github.list_dispatched_runs(scope, given["repo"], branch, between)

    async def _under_way(self, scope: Scope, occurrence: Occurrence, epoch: int) -> Occurrence | None:
        """The flood guard: the newest that this schedule started and whose run is still under way."""
        for other in await self._rows.other_runs(occurrence, RUNS_UNDER_WAY):
            if not await self._run_ended(scope, other):
                return other
            await self._rows.note_run_ended(other, epoch, self._clock.now())
        return None

    async def _run_ended(self, scope: Scope, other: Occurrence) -> bool:
        if other.run_id is None:
            return True
        try:
            run = await self._github.get_run(scope, other.arguments["repo"], other.run_id)
        except InstallationGone:
            raise
        except GitHubNotFound:
            return True  # deleted by its owner
        return run.status == "completed"

    async def _failed_attempt(
        self, occurrence: Occurrence, error: GitHubError, epoch: int, *, sent: bool
    ) -> None:
        await self._try_again(occurrence, str(error), epoch, sent=sent)

    async def _try_again(self, occurrence: Occurrence, text: str, epoch: int, *, sent: bool) -> None:
        """Later, or not any more; what GitHub said it started is done also if its run is never found."""
        match after_attempt(occurrence, self._clock.now(), sent=sent):
            case TryAgain(at):
                await self._later(occurrence, at, text, epoch, counts=True)
            case _ if occurrence.result is not None:
                await self._complete(occurrence, occurrence.result, epoch)
            case _:
                await self._fail(occurrence, _advised(text, occurrence, sent=sent), epoch)

    async def _later(
        self, occurrence: Occurrence, at: datetime, error: str, epoch: int, *, counts: bool
    ) -> None:
        now, error = self._clock.now(), clip(redact(error))
        if await self._rows.postpone(occurrence, at, error, counts=counts, epoch=epoch, now=now):
            log.info("schedule.postponed", schedule=occurrence.schedule, until=at.isoformat(), error=error)

    async def _complete(self, occurrence: Occurrence, result: str, epoch: int) -> None:
        if await self._rows.complete(occurrence, result, None, epoch, self._clock.now()):
            self._done(occurrence, result)

    async def _fail(self, occurrence: Occurrence, error: str, epoch: int, *, refused: bool = False) -> None:
        log.warning("schedule.failed", schedule=occurrence.schedule, error=error)
        if await self._rows.fail(occurrence, error, epoch, self._clock.now(), refused=refused):
            self._count(OccurrenceStatus.FAILED)

    def _done(self, occurrence: Occurrence, result: str) -> None:
        log.info("schedule.completed", schedule=occurrence.schedule, result=result)
        self._count(OccurrenceStatus.COMPLETED)

    def _count(self, status: OccurrenceStatus) -> None:
        self._metrics.schedule_runs_total.labels(status.value).inc()


def _advised(text: str, occurrence: Occurrence, *, sent: bool) -> str:
    """An error from outside with what to do about it, which is never cut off."""
    if occurrence.action is not Action.DISPATCH:
        return clip(redact(text))
    todo = after_giving_up(occurrence.arguments["repo"], occurrence.arguments["workflow"], sent=sent)
    return f"{clip(redact(text), TEXT_LIMIT - len(todo) - 1)} {todo}"
