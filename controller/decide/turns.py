"""When a waiting job's turn comes, as far as that can be said. Pure; only the job's page asks."""

from collections.abc import Callable, Iterable
from datetime import timedelta

from controller.domain.jobs import Entity, Job, JobStatus
from controller.domain.pages import Ahead, Pace
from controller.domain.reasons import Skip

ENOUGH_FINISHED = 20  # jobs on boards of a type; with fewer a median says nothing

# Who waits for one of these waits in a queue; the other reasons lie in the job, its owner or its workers.
IN_THE_QUEUE = frozenset({None, Skip.NO_FREE_SLOTS, Skip.GITHUB_BUDGET_LOW, Skip.CLUSTER_UNKNOWN})


def queues(job: Job) -> bool:
    """Whether it makes sense to ask for the job's place."""
    return job.status is JobStatus.PENDING and job.mark is None and job.skip_reason in IN_THE_QUEUE


def position(job: Job, queue: Iterable[Ahead], priority: Callable[[Entity], int]) -> int:
    """The job's place in the queue for its boards, counted from 1: by priority, then by age."""
    own = priority(job.entity)
    ahead = 0
    for other in queue:
        theirs = priority(other.entity)
        if theirs >= own:
            ahead += other.waiting if theirs > own else other.earlier
    return ahead + 1


def estimate(place: int, pace: Pace) -> timedelta | None:
    """How long it will be about until the job starts; None if too little is known or no board works.

    With `slots` boards that each take `board_time` for a job, one of them is free every `board_time / slots`.
    """
    if pace.finished < ENOUGH_FINISHED or pace.slots <= 0 or pace.board_time is None:
        return None
    return pace.board_time * place / pace.slots + (pace.start_time or timedelta())
