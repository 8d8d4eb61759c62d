"""A fleet at one moment, with something of everything that pages can show."""

from datetime import timedelta

from tests.clocks import EPOCH as NOW
from tests.integration.web_pages.seeding import Seed, ago

PENDING, RUNNING, LOST, DONE, PRIVATE, IGNORED = 1, 2, 3, 4, 5, 6
FAILED_WORKER = "rise-riscv-runner-failed001"
LOG = "\n".join(f"line {number} of the runner" for number in range(60)) + "\nthe runner's last words"


async def seed_fleet(seed: Seed) -> None:
    """Boards, jobs and workers in all states, events, a hold, a day of snapshots."""
    for number, state in enumerate(("busy", "free", "held", "not_ready", "unreachable", "cordoned"), 1):
        worker = "rise-riscv-runner-busy00001" if state == "busy" else None
        await seed.board(f"scw-em-rv1-{number}", state, worker=worker)
    await seed.board("stray-1", "free", board="unknown-type")
    await seed.hold("board", "scw-em-rv1-3", "breaker", until=NOW + timedelta(minutes=4), note="3 failures")
    full = {"board": "scw-em-rv1", "boards": 6, "states": {"busy": 1, "held": 1, "unreachable": 1}}
    waits = {"skip_reason": "no_free_slots", "skip_since": ago(minutes=9), "skip_detail": full}
    await seed.job(PENDING, "pending", **waits)
    bound = {"runner_name": "rise-riscv-runner-busy00001", "started_at": ago(minutes=2)}
    await seed.job(RUNNING, "running", **bound)
    await seed.job(LOST, "failed", failure_info={"reason": "stuck_queued"}, completed_at=ago(minutes=5))
    ended = {"started_at": ago(minutes=40), "completed_at": ago(minutes=30), "created_at": ago(hours=1)}
    await seed.job(
        DONE, "completed", conclusion="success", runner_name="rise-riscv-runner-done00001", **ended
    )
    await seed.job(PRIVATE, "pending", private=True, name="tops3cret", repo="example-org/tops3cret", **waits)
    way = {"jit_at": ago(minutes=4), "pod_at": ago(minutes=4), "running_at": ago(minutes=3)}
    await seed.worker(
        "rise-riscv-runner-busy00001", "running", node="scw-em-rv1-1", online_at=ago(minutes=3), **way
    )
    done = {"created_at": ago(minutes=50), "pod_at": ago(minutes=49), "pod_ended_at": ago(minutes=30)}
    await seed.worker(
        "rise-riscv-runner-done00001", "completed", node="scw-em-rv1-1", completed_at=ago(minutes=30), **done
    )
    info = {
        "containers": [{"name": "runner", "exit_code": 137, "reason": "OOMKilled"}],
        "log_tail": LOG,
        "events": [{"type": "Warning", "reason": "Evicted", "message": "no disk", "count": 2}],
    }
    failed = {"failure_reason": "pod_failed", "failure_info": info, "completed_at": ago(hours=2)}
    await seed.worker(
        FAILED_WORKER, "failed", node="scw-em-rv1-4", made_for=PENDING, pod_ended_at=ago(hours=2), **failed
    )
    detail = {"labels": ["riscv"], "nearest": ["ubuntu-24.04-riscv"], "private": False}
    await seed.event("workflow_job.queued", outcome="ignored_no_label", job_id=IGNORED, detail=detail)
    await seed.event("workflow_job.queued", outcome="job_stored", job_id=PENDING, at=ago(minutes=10))
    await seed.run("""
        INSERT INTO board_snapshots (pool, at, slots, free, busy, held, unreachable, queue_depth, oldest_wait_seconds)
        SELECT pool, timestamptz '2026-03-01 12:00Z' - n * interval '1 min', 6, 3, n % 4, 0, 0, n % 7, n
        FROM generate_series(0, 1439) n, unnest(ARRAY['scw-em-rv1', 'vector']) pool
    """)
