"""A dispatch: which run a lost answer belongs to, what an attempt that failed means, and what to change. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller.domain.constants import DISPATCH_WINDOW, OCCURRENCE_BACK_OFF
from controller.domain.schedules import Occurrence, StartedRun

SKEW = timedelta(minutes=10)  # GitHub's clock is not ours; further apart it would refuse our JWTs


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Later."""

    at: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Not any more, until somebody retries it by hand."""


def search_span(occurrence: Occurrence, now: datetime) -> tuple[datetime, datetime] | None:
    """When the run of an unanswered request would have been created; None: nothing was sent."""
    if occurrence.sent_at is None:
        return None
    last = occurrence.last_sent_at or occurrence.sent_at
    return occurrence.sent_at - SKEW, min(now, last + DISPATCH_WINDOW) + SKEW


def span_before(now: datetime) -> tuple[datetime, datetime]:
    """When what is there before a request was created, as far as the request's own run is looked for."""
    return now - SKEW, now + SKEW


def pick_run(
    runs: Iterable[StartedRun], workflow: str, bot: str, not_ours: Collection[int]
) -> StartedRun | None:
    """The first run of this workflow that our App started, but for those known to be of other requests."""
    fitting = [
        run for run in runs if run.run_id not in not_ours and _is(run, workflow) and _may_be_by(run, bot)
    ]
    return min(fitting, key=lambda run: run.run_id, default=None)


def _is(run: StartedRun, workflow: str) -> bool:
    """Whether a run belongs to the workflow, which is named by its file or its number."""
    path = run.workflow.partition("@")[0]
    return workflow == str(run.workflow_id) or path.rpartition("/")[2] == workflow


def _may_be_by(run: StartedRun, login: str) -> bool:
    """Whether nothing speaks against that account's having started a run; GitHub need not name one."""
    return run.actor is None or run.actor.lower() == login.lower()


def may_send(occurrence: Occurrence) -> bool:
    """Whether this attempt may start the workflow; past the last one it only looks for the run."""
    return occurrence.attempts <= occurrence.max_attempts


def after_attempt(occurrence: Occurrence, now: datetime, *, sent: bool) -> TryAgain | GiveUp:
    """1, 2, 4 min; behind the last attempt an unanswered request is looked for once more."""
    last = occurrence.max_attempts if sent else occurrence.max_attempts - 1
    if occurrence.attempts > last:
        return GiveUp()
    wait = OCCURRENCE_BACK_OFF[min(occurrence.attempts, len(OCCURRENCE_BACK_OFF)) - 1]
    return TryAgain(now + wait)


def advice(status: int | None, repo: str, workflow: str, ref: str) -> str:
    """What to change when GitHub refuses a dispatch."""
    match status:
        case 403:
            return (
                f"GitHub refuses to start workflows of {repo}: give the GitHub App the repository permission "
                "`actions: write` and have the new permission approved for its installation, then retry."
            )
        case 404:
            return (
                f"GitHub knows no workflow {workflow} in {repo}, or the App may not see it: check both names in "
                "`with`, and that the App is installed for the repository."
            )
        case 422:
            return (
                f"GitHub cannot start {workflow} of {repo} on {ref}: the workflow file on that branch needs "
                "`on: workflow_dispatch` and the inputs that `with.inputs` names, and the branch must exist."
            )
    return f"GitHub refused to start {workflow} of {repo}."


def advice_when_suspended(repo: str) -> str:
    """What to change while the App is suspended there."""
    return (
        f"The GitHub App is suspended for the owner of {repo}, so nothing can be started there: have the owner "
        "unsuspend it on GitHub, under Settings, GitHub Apps, Configure, then retry."
    )


def after_giving_up(repo: str, workflow: str, *, sent: bool) -> str:
    """What to do when GitHub did not answer until the last attempt."""
    retry = "retry the occurrence on /schedules or with `PATCH /api/occurrences/{id}`."
    if not sent:
        return f"Nothing was started: once GitHub answers again (www.githubstatus.com), {retry}"
    return f"No run was found: if the Actions page of {repo} shows none of {workflow} either, {retry}"
