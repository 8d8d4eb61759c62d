"""The week before the demo began, made up: so that charts, estimates and lists have something to show at once.

Jobs come by day more than by night and wait in a queue for the boards of their pool; everything else follows. Nothing
of it is under way any more when the demo begins, so the controller has nothing to do with it.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controller.demo.failures import failure_info
from controller.demo.fleet import (
    FLAKY_BOARD,
    IMAGE,
    ORGANIZATION_APP,
    POOLS,
    PRIVATE,
    USER_APP,
    DemoPool,
    repositories,
)
from controller.domain.constants import BREAKER_MEMORY
from controller.domain.reasons import Reason
from controller.domain.workers import NAME_ALPHABET, NAME_SUFFIX_LENGTH, NameRule
from controller.gateways.postgres.database import Database
from controller.gateways.postgres.past import write_past
from controller.simulators.github import GitHubSimulator

LENGTH = timedelta(days=7)
FIRST_JOB, FIRST_RUN = 50_000_000_000, 10_000_000_000  # below the ids of the simulated GitHub
NAMES = ("build", "test", "lint", "bench", "package")
START_SECONDS = 6.0  # from reserving a runner to the start of its job
TYPICAL_SECONDS, LATE_SECONDS = 840.0, 30.0  # of work; the last hour is already like the demo itself
LATE = timedelta(hours=1)
LOAD = 0.42  # of the boards, on average
FAILURES = (
    Reason.POD_FAILED,
    Reason.RUNNER_NEVER_REGISTERED,
    Reason.POD_STUCK_PENDING,
    Reason.NODE_UNREACHABLE,
)


@dataclass(frozen=True, slots=True)
class Stay:
    """One worker's time on a board, and when its job was queued."""

    queued_at: datetime
    reserved_at: datetime
    ended_at: datetime
    board: str
    failure: Reason | None


async def tell_past(
    database: Database, github: GitHubSimulator, rng: random.Random, names: NameRule, now: datetime
) -> None:
    """Write the week before `now`."""
    jobs: list[dict[str, Any]] = []
    workers: list[dict[str, Any]] = []
    snapshots: list[dict[str, Any]] = []
    for pool in POOLS:
        stays = list(work(pool, rng, now - LENGTH, now))
        snapshots.append(minutes(pool, stays, now - LENGTH, now))
        for stay in stays:
            row = row_of(pool, stay, github, rng, names, FIRST_JOB + len(workers))
            workers.append(row)
            if stay.failure is None:
                jobs.append(row)
    await write_past(database, jobs, workers, snapshots)


def work(pool: DemoPool, rng: random.Random, start: datetime, end: datetime) -> Iterator[Stay]:
    """Jobs of one pool, each taking the board that is free first; none is under way at the end."""
    free_at = {f"{pool.name}-{number + 1}": start for number in range(pool.boards)}
    at, change = start, end - LATE
    while True:
        every = (LATE_SECONDS if at >= change else TYPICAL_SECONDS / daylight(at)) / pool.boards / LOAD
        due = at + timedelta(seconds=rng.expovariate(1 / every))
        at = change if at < change < due else due
        board = min(free_at, key=lambda name: (free_at[name], rng.random()))
        reserved = max(at, free_at[board])
        failure = failing(board, rng, end - reserved)
        work_seconds = LATE_SECONDS if reserved >= change else TYPICAL_SECONDS
        seconds = 90.0 if failure else START_SECONDS + work_seconds * rng.lognormvariate(-0.2, 0.6)
        ended = reserved + timedelta(seconds=seconds)
        if reserved < change < ended:
            ended = change  # or short jobs would pile up behind the last long ones
        if ended >= end:
            return
        free_at[board] = ended
        yield Stay(at, reserved, ended, board, failure)


def daylight(at: datetime) -> float:
    """How lively people are: most in the afternoon, little at night, less at weekends."""
    day = 1.0 - 0.75 * math.cos((at.hour + at.minute / 60 - 2.0) * math.pi / 12)
    return max(0.15, day * (0.45 if at.weekday() >= 5 else 1.1))


def failing(board: str, rng: random.Random, age: timedelta) -> Reason | None:
    """Now and then a worker fails, on one board more often; none so lately that a breaker would mind."""
    chance = 0.12 if board == FLAKY_BOARD else 0.008
    if age < BREAKER_MEMORY or rng.random() >= chance:
        return None
    return rng.choices(FAILURES, weights=(6, 3, 2, 1))[0]


def minutes(pool: DemoPool, stays: list[Stay], start: datetime, end: datetime) -> dict[str, Any]:
    """What the leader would have written of the pool every minute."""
    length = int((end - start) / timedelta(minutes=1))
    busy, depth, oldest = [0] * length, [0] * length, [0] * length
    for stay in stays:
        for minute in range(_minute(stay.reserved_at, start), min(length, _minute(stay.ended_at, start))):
            busy[minute] = min(pool.boards, busy[minute] + 1)
        for minute in range(_minute(stay.queued_at, start), min(length, _minute(stay.reserved_at, start))):
            depth[minute] += 1
            waited = (start + timedelta(minutes=minute + 1) - stay.queued_at).total_seconds()
            oldest[minute] = max(oldest[minute], round(waited))
    at = [start + timedelta(minutes=minute) for minute in range(length)]
    return {"pool": pool.name, "slots": pool.boards, "at": at, "busy": busy, "depth": depth, "oldest": oldest}


def row_of(
    pool: DemoPool, stay: Stay, github: GitHubSimulator, rng: random.Random, names: NameRule, job_id: int
) -> dict[str, Any]:
    """The rows of a job and its worker, in one."""
    repo = rng.choice(repositories())
    account = github.world.account(repo.partition("/")[0])
    if account is None:
        raise LookupError(repo)
    app_id = ORGANIZATION_APP if account.type == "Organization" else USER_APP
    run_id = FIRST_RUN + job_id % FIRST_RUN // 2
    running = stay.reserved_at + timedelta(seconds=START_SECONDS / 2)
    started = stay.reserved_at + timedelta(seconds=START_SECONDS)
    return {
        "job_id": job_id,
        "name": f"{rng.choice(NAMES)} ({rng.randint(1, 3)})",
        "html_url": f"https://github.com/{repo}/actions/runs/{run_id}/job/{job_id}",
        "entity_id": account.id,
        "entity_name": account.login,
        "entity_type": account.type,
        "repo": repo,
        "own_repo": repo if account.type == "User" else None,
        "made_for": None if stay.failure else job_id,
        "private": repo in PRIVATE,
        "app_id": app_id,
        "installation_id": account.installations[int(app_id)].id,
        "labels": sorted(pool.labels),
        "pool": pool.name,
        "image": IMAGE,
        "run_id": run_id,
        "conclusion": "failure" if rng.random() < 0.08 else "success",
        "worker": names.name("".join(rng.choices(NAME_ALPHABET, k=NAME_SUFFIX_LENGTH))),
        "node": stay.board,
        "status": "failed" if stay.failure else "completed",
        "failure_reason": stay.failure.value if stay.failure else None,
        "failure_info": failure_info(stay.failure, stay.board, stay.ended_at) if stay.failure else None,
        "queued_at": stay.queued_at,
        "reserved_at": stay.reserved_at,
        "running_at": None if stay.failure is Reason.POD_STUCK_PENDING else running,
        "online_at": None if stay.failure else started,
        "started_at": started,
        "ended_at": stay.ended_at,
    }


def _minute(at: datetime, start: datetime) -> int:
    return max(0, int((at - start) / timedelta(minutes=1)))
