"""Pages over a million jobs, webhooks against bare statements, and an iteration that has nothing to do."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from controller.domain.orders import PodOrder
from controller.gateways.kubernetes.gateway import KubernetesGateway
from controller.ports import Secret
from hack.bench.figures import Figure, percentile
from hack.bench.rig import IMAGE, LABELS, Rig, gateways
from hack.bench.world import BOARD

WAITING_JOBS, LIVE_WORKERS = 2_000, 500
WAITING_FROM = 50_000_000  # the ids of waiting jobs, as WAITING has them
PAGES = (
    "/",
    "/?span=7d",
    "/usage",
    "/jobs",
    "/jobs?status=failed",
    "/jobs?status=pending&pool=bench",
    "/jobs?failed_since=-1d",
    "/jobs?text=job+97",
    "/jobs.json?page=50",
    "/jobs/97",
    f"/jobs/{WAITING_FROM + 1_000}",
    "/queue",
    "/workers",
    "/workers?status=failed",
    "/workers?failed_since=-1d",
    "/workers?node=board-0097",
    "/workers/rise-riscv-runner-000000097",
    "/boards",
    "/schedules",
)
PAGE_LIMIT_MS = 200.0
ITERATION_LIMIT_MS = 250.0

JOBS = """
INSERT INTO jobs (job_id, name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool,
    run_id, status, conclusion, runner_name, heard_at, poll_at, created_at, seen_at, started_at, completed_at,
    updated_at)
SELECT g, 'job ' || g, 1 + g %% 50, 'org-' || g %% 50, 'Organization', 'org-' || g %% 50 || '/code', '111',
    7, ARRAY['bench'], 'bench', g / 8, CASE WHEN g %% 97 = 0 THEN 'failed' ELSE 'completed' END, 'success',
    'rise-riscv-runner-' || lpad(g::text, 9, '0'), at, at, at, at, at + interval '30 s', at + interval '5 min', at
FROM (SELECT g, now() - interval '1 hour' - g * interval '20 s' AS at FROM generate_series(1, %(count)s) g) made
"""
WORKERS = """
INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image,
    made_for, node, status, failure_reason, failure_info, created_at, pod_at, running_at, pod_ended_at, completed_at,
    updated_at)
SELECT 'rise-riscv-runner-' || lpad(g::text, 9, '0'), 1 + g %% 50, 'org-' || g %% 50, 'Organization', '111', 7,
    ARRAY['bench'], 'bench', 'image', g, 'board-' || lpad((g %% 500)::text, 4, '0'),
    CASE WHEN g %% 97 = 0 THEN 'failed' ELSE 'completed' END,
    CASE WHEN g %% 97 = 0 THEN 'pod_failed' END,
    CASE WHEN g %% 97 = 0 THEN jsonb_build_object('containers', '[{"name": "runner", "exit_code": 1}]'::jsonb,
        'log_tail', repeat('a line of the log of runner ' || g || chr(10), 200)) END,
    at, at, at, at + interval '5 min', at + interval '5 min', at
FROM (SELECT g, now() - interval '1 hour' - g * interval '20 s' AS at FROM generate_series(1, %(count)s) g) made
"""
WAITING = """
INSERT INTO jobs (job_id, name, entity_id, entity_name, entity_type, repo, app_id, installation_id, labels, pool,
    run_id, status, heard_at, poll_at, created_at, seen_at, updated_at)
SELECT 50000000 + g, 'waiting', 1 + g %% 50, 'org-' || g %% 50, 'Organization', 'org-' || g %% 50 || '/code', '111',
    7, ARRAY['bench'], 'bench', g / 8, 'pending', now(), now() + interval '1 hour', now() - interval '10 min',
    now(), now()
FROM generate_series(1, %(count)s) g
"""
LIVE = """
INSERT INTO workers (name, entity_id, entity_name, entity_type, app_id, installation_id, labels, pool, image, status,
    created_at, pod_at, running_at, create_rv, updated_at)
SELECT 'rise-riscv-runner-live' || lpad(g::text, 5, '0'), 1 + g %% 50, 'org-' || g %% 50, 'Organization', '111', 7,
    ARRAY['bench'], 'bench', 'image', 'running', now(), now(), now(), 1, now()
FROM generate_series(0, %(count)s - 1) g
"""
EVENTS = """
INSERT INTO events (at, source, kind, job_id, worker)
SELECT now() - interval '1 hour' - g * interval '20 s', 'webhook', 'workflow_job.queued', g,
    'rise-riscv-runner-' || lpad(g::text, 9, '0')
FROM generate_series(1, %(count)s) g
"""
SNAPSHOTS = """
INSERT INTO board_snapshots (pool, at, slots, free, busy, held, unreachable, queue_depth, oldest_wait_seconds)
SELECT pool, now() - minute * interval '1 min', 500, 100, 400, 0, 0, minute % 50, 60
FROM unnest(ARRAY['bench', 'one', 'another']) pool, generate_series(1, 7 * 24 * 60) minute
"""
SCHEDULES = """
INSERT INTO schedules (name, owner, enabled, type, spec, action, arguments, created_at, updated_at)
SELECT 'schedule-' || g, 'api', false, 'cron', '0 8 * * *', 'prune', '{}', now(), now() FROM generate_series(1, 20) g
"""
OCCURRENCES = """
INSERT INTO occurrences (schedule, due_at, action, status, created_at)
SELECT 'schedule-' || 1 + g %% 20, at, 'prune', CASE WHEN g %% 97 = 0 THEN 'failed' ELSE 'completed' END, at
FROM (SELECT g, now() - g * interval '1 min' AS at FROM generate_series(1, %(count)s / 20) g) made
"""
FORGET = "TRUNCATE jobs, workers, events, schedules, occurrences, board_snapshots"


async def pages(rig: Rig, jobs: int, samples: int) -> AsyncIterator[Figure]:
    """Every page, again and again, while every board is taken and many jobs wait."""
    await _run(rig, FORGET)
    await _run(rig, JOBS, jobs)
    await _run(rig, WORKERS, jobs)
    await _run(rig, WAITING, WAITING_JOBS)
    await _run(rig, LIVE, LIVE_WORKERS)
    async with gateways(rig) as (_, cluster):
        await _make_pods(rig, cluster, LIVE_WORKERS)
    await _run(rig, EVENTS, jobs)
    await _run(rig, SNAPSHOTS)
    await _run(rig, SCHEDULES)
    await _run(rig, OCCURRENCES, jobs)
    await _run(rig, "ANALYZE")
    async with rig.running():
        bare = await _time_page(rig, "/health", samples)
        for page in PAGES:
            took = await _time_page(rig, page, samples)
            yield Figure(f"{page} over {jobs:,} jobs, p95", took, "ms", PAGE_LIMIT_MS, bare)


async def _time_page(rig: Rig, path: str, samples: int) -> float:
    took = []
    for _ in range(samples):
        began = time.perf_counter()
        answer = await rig.http.get(f"{rig.program_url}{path}", follow_redirects=True)
        answer.raise_for_status()
        took.append((time.perf_counter() - began) * 1000)
    return percentile(took, 0.95)


async def webhooks(rig: Rig, deliveries: int, at_once: int) -> AsyncIterator[Figure]:
    """Deliveries over HTTP, against an INSERT into jobs, one into events and a NOTIFY in a transaction."""
    await _run(rig, FORGET)
    floor = await _at_once(at_once, deliveries, lambda number: _bare(rig, number))
    await _run(rig, FORGET)
    async with rig.running():
        began = time.perf_counter()
        await rig.deliver_all(deliveries, at_once)
        took = (time.perf_counter() - began) * 1000
    yield Figure(f"{deliveries} webhooks, {at_once} at once", took, "ms", 3 * floor, floor)


async def _bare(rig: Rig, number: int) -> None:
    row = "SELECT pg_notify('bare', '')"
    event = "INSERT INTO events (at, source, kind, delivery) VALUES (now(), 'webhook', 'bare', %(guid)s)"
    job = WAITING.replace(f"{WAITING_FROM} + g", "60000000 + %(number)s").replace("%(count)s", "1")
    async with rig.database.transaction() as connection:
        await connection.execute(job, {"number": number})
        await connection.execute(event, {"guid": f"bare-{number}"})
        await connection.execute(row)


async def _at_once(at_once: int, count: int, work: Callable[[int], Awaitable[None]]) -> float:
    places = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with places:
            await work(number)

    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    return (time.perf_counter() - began) * 1000


async def idle_iteration(
    rig: Rig, sizes: tuple[int, ...], workers: int, rounds: int
) -> AsyncIterator[Figure]:
    """Nothing can be done: every board is taken, and so many jobs wait."""
    await _run(rig, FORGET)
    await _run(rig, LIVE, workers)
    async with gateways(rig) as (_, cluster):
        await _make_pods(rig, cluster, workers)
    had = 0
    for size in sizes:
        await _run(rig, WAITING.replace(str(WAITING_FROM), str(WAITING_FROM + had * 10)), size - had)
        had = size
        await _run(rig, "ANALYZE")
        async with rig.running():
            await _rounds(rig, 2)
            before = await rig.metric("switchboard_iteration_seconds_sum")
            count = await _rounds(rig, rounds)
            took = (await rig.metric("switchboard_iteration_seconds_sum") - before) / count * 1000
        name = f"iteration with {size} waiting jobs and {workers} workers"
        yield Figure(name, took, "ms", ITERATION_LIMIT_MS)


async def _rounds(rig: Rig, rounds: int) -> int:
    """Wait for so many iterations; how many there were."""
    first = await _iterations(rig)
    while (now := await _iterations(rig)) < first + rounds:  # noqa: ASYNC110 -- another process
        await asyncio.sleep(0.2)
    return now - first


async def _iterations(rig: Rig) -> int:
    return int((await rig.http.get(f"{rig.program_url}/ready")).json()["iterations"])


async def _make_pods(rig: Rig, cluster: KubernetesGateway, count: int) -> None:
    places = asyncio.Semaphore(8)

    async def one(number: int) -> None:
        scope = rig.scope(number)
        order = PodOrder(
            name=f"rise-riscv-runner-live{number:05d}",
            instance=rig.file.instance,
            image=IMAGE,
            pool=BOARD,
            board=BOARD,
            entity=scope.entity,
            app_id=scope.app_id,
            installation_id=scope.installation_id,
            labels=LABELS,
        )
        async with places:
            await cluster.provision_runner(order, Secret("none"))

    await asyncio.gather(*(one(number) for number in range(count)))


async def _run(rig: Rig, statement: str, count: int | None = None) -> None:
    """On a connection of its own: those of the pool are cut when a million rows take too long."""
    async with await rig.database.connect() as connection:
        await connection.execute(statement, None if count is None else {"count": count})
