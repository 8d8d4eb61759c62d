"""Whether what the pages say at a moment fits together, as a picture of them should."""

from collections.abc import Iterable, Mapping
from typing import Any

MOMENT_SECONDS = 8  # a job may stand there for so long before anything is decided about it

Shown = Mapping[str, Any]


def contradictions(overview: Shown, pending: Iterable[Shown]) -> list[str]:
    """What would make a reader of the pages wonder; each is over with the next iteration or two."""
    found = []
    boards = overview["boards"]
    running, taken = overview["counts"]["jobs_running"], sum(_taken(board) for board in boards)
    if running > taken:
        found.append(f"{running} jobs run on {taken} boards")
    free = {pool for board in boards if board["state"] == "free" for pool in board["pools"]}
    for job in pending:
        reason = _reason(job)
        if reason is None and job["wait_seconds"] > MOMENT_SECONDS:
            found.append(f"job {job['job_id']} waits for no reason")
        if reason == "no_free_slots" and job["pool"] in free:
            found.append(f"job {job['job_id']} waits for a board beside a free one")
    return found


def standing(overview: Shown, pending: Iterable[Shown]) -> dict[str, object]:
    """What is where: if it is the same before and after a picture, it was so on the picture."""
    boards = {
        board["node"]: (board["state"], board["worker"], board["job_id"]) for board in overview["boards"]
    }
    return {**boards, **{str(job["job_id"]): _reason(job) for job in pending}}


def _reason(job: Shown) -> str | None:
    return job["reason"]["reason"] if job["reason"] else None


def _taken(board: Shown) -> bool:
    """A held board may still have its job."""
    return board["state"] == "busy" or board["job_id"] is not None
