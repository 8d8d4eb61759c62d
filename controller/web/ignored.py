"""Jobs that were delivered but not taken on: only events tell of them."""

from collections.abc import Iterable

from controller.domain.deliveries import Outcome
from controller.domain.pages import EventRow, JobStory
from controller.web.shown import Shown


def belongs_to_private(story: JobStory) -> bool:
    """Whether a job's repository is private; without a row the deliveries say so, and silence means yes."""
    if story.job is not None:
        return story.job.private
    return any(event.detail.get("private") is not False for event in story.events)


def ignored(events: Iterable[EventRow], *, hidden: bool) -> Shown:
    """Why a job that was delivered has no row: the last delivery's outcome in words."""
    last = [event for event in events if event.outcome is not None]
    outcome = last[-1].outcome if last else None
    detail = last[-1].detail if last else {}
    labels, nearest = detail.get("labels"), detail.get("nearest")
    ours = f" Nearest: [{', '.join(map(str, nearest))}]." if isinstance(nearest, list) else ""
    match outcome:
        case Outcome.IGNORED_NO_LABEL:
            named = "" if hidden or not isinstance(labels, list) else f" [{', '.join(map(str, labels))}]"
            sentence = f"Your labels{named} match no pool.{ours}"
            step = "Change `runs-on` to exactly one label set that a pool serves, then re-run the job."
        case Outcome.NOT_ALLOWED:
            sentence = "This repository may not use these boards."
            step = "Ask the operators to add it to `access.allow`, or to take it off `access.deny`."
        case Outcome.IGNORED_NO_APP:
            sentence = "The delivery came from a GitHub App that is not configured here."
            step = "Ask the operators which App to install for this account."
        case Outcome.JOB_NOT_FOUND:
            sentence = "It ended before it was ever seen queued, so no runner was made for it."
            step = "Nothing to do; re-run it if a result is wanted."
        case _:
            sentence = "It was delivered but not taken on."
            step = "The events below tell what arrived; re-run the job if a result is wanted."
    return {"outcome": outcome, "sentence": sentence, "next_step": step}
