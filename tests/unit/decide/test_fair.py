"""`scheduling: fair`: a small owner's wait is bounded whatever a large one has queued; with `fifo` it is not.

Two owners, one with 500 jobs and one with 3 queued behind them, on 4 boards, all jobs of one length. With `fair` an
owner with jobs has a claim to an equal share of the boards, here 2. So the small one's first two jobs begin within
the next 4 endings and its third when one of these ends: within 8 endings, which is two job lengths and turnarounds,
however many jobs the large one has queued. With `fifo` it waits for all 500.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Literal

import pytest

from controller.decide.capacity import Claim, free_slots
from controller.decide.demand import Share, Situation, match_demand
from controller.domain.jobs import Entity, EntityType, Job, JobStatus
from controller.domain.pools import Catalogue, Pool
from controller.domain.sightings import Node, NodeView, PodView
from controller.domain.workers import Worker, WorkerStatus
from tests.clocks import EPOCH

LARGE, SMALL = (Entity(n, name, EntityType.ORGANIZATION) for n, name in ((1, "large"), (2, "small")))
POOL = Pool("rv1", "rv1", (("rv1",),), "image", {"board": "rv1"})
BOARDS, LARGE_JOBS, SMALL_JOBS, SECONDS = 4, 500, 3, 60


def a_job(number: int, entity: Entity) -> Job:
    return Job(
        job_id=number,
        entity=entity,
        repo=f"{entity.name}/repo",
        labels=("rv1",),
        status=JobStatus.PENDING,
        created_at=EPOCH + timedelta(milliseconds=number),
        app_id="111",
        installation_id=entity.id,
        run_id=number,
        seen_at=EPOCH,
    )


def a_worker(number: int, job: Job, now: datetime) -> Worker:
    return Worker(
        name=f"w{number}",
        entity=job.entity,
        app_id="111",
        installation_id=job.installation_id,
        labels=job.labels,
        pool="rv1",
        image="image",
        status=WorkerStatus.RUNNING,
        created_at=now,
        pod_at=now,
        job_id=job.job_id,
        job_status=JobStatus.RUNNING,
    )


def endings_until_served(fair: bool) -> dict[str, int]:
    """How many jobs had ended before each owner's last job began."""
    pending = {n: a_job(n, LARGE) for n in range(LARGE_JOBS)}
    pending |= {n: a_job(n, SMALL) for n in range(LARGE_JOBS, LARGE_JOBS + SMALL_JOBS)}
    nodes = NodeView(
        {f"n{n}": Node(f"n{n}", {"board": "rv1"}, True, True, False, 1) for n in range(BOARDS)}, 1
    )
    running: list[Worker] = []
    ended, last = 0, Counter[str]()
    now = EPOCH
    while pending or running:
        claims = [Claim(POOL.selector, []) for _ in running]
        situation = Situation(
            now=now,
            jobs=sorted(pending.values(), key=lambda job: job.created_at),
            workers=running,
            slots=free_slots(nodes, PodView({}, 1), claims, frozenset()),
            catalogue=Catalogue((POOL,)),
            share=lambda entity: Share(None, 5),
            allowed=lambda job: True,
            apps={"111": EntityType.ORGANIZATION},
            fair=fair,
        )
        for step in match_demand(situation).steps:
            pending.pop(step.job.job_id)
            running.append(a_worker(step.job.job_id, step.job, now))
            last[step.job.entity.name] = ended
        running.pop(0)  # the oldest ends first
        ended += 1
        now += timedelta(seconds=SECONDS / BOARDS)
    return dict(last)


@pytest.mark.parametrize(("scheduling", "bounded"), [("fair", True), ("fifo", False)])
def test_a_small_owner_waits_for_two_rounds_of_the_boards_at_most_only_with_fair(
    scheduling: Literal["fair", "fifo"], bounded: bool
) -> None:
    waited = endings_until_served(scheduling == "fair")["small"]
    if bounded:
        assert waited <= 2 * BOARDS
    else:
        assert waited >= LARGE_JOBS - BOARDS
