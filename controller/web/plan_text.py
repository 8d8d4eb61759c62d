"""A plan in words, for `switchboard plan`."""

from collections.abc import Iterator
from datetime import datetime

from controller.decide.demand import Plan
from controller.domain.durations import show_duration
from controller.domain.reasons import EXPLANATIONS
from controller.web.explain_text import UNPRINTABLE
from controller.web.wording import in_figures


def describe_plan(plan: Plan, now: datetime) -> str:
    """Every step, and every skipped job with its reason and what to do."""
    return "\n".join(UNPRINTABLE.sub(" ", line) for line in _lines(plan, now))


def _lines(plan: Plan, now: datetime) -> Iterator[str]:
    if not plan.steps and not plan.skips and not plan.warm:
        yield "No job is pending: nothing to do."
    for step in plan.steps:
        job = step.job
        yield (
            f"start  job {job.job_id}  {job.repo}  [{', '.join(job.labels)}]  "
            f"waiting {show_duration(now - job.created_at)}  → pool {step.pool.name}, a slot of {step.node}"
        )
    for spare in plan.warm:
        owner = spare.floor.scope.repo or spare.floor.scope.entity.name
        yield (
            f"warm   {spare.floor.schedule}  {owner}  [{', '.join(spare.floor.labels)}]  "
            f"→ pool {spare.pool.name}, a slot of {spare.node}"
        )
    for skip in plan.skips:
        job, why = skip.job, EXPLANATIONS[skip.reason]
        yield f"skip   job {job.job_id}  {job.repo}  [{', '.join(job.labels)}]  {skip.reason.value}"
        yield f"       {why.sentence} {why.next_step}"
        until = skip.detail.get("until")
        told = (in_figures(skip.reason.value, skip.detail), f"Until {until}." if until else "")
        if any(told):
            yield f"       {' '.join(each for each in told if each)}"
