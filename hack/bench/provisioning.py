"""From queued to pod: one job at a time, in bursts, and when a board becomes free."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator

from controller.domain.orders import PodOrder
from controller.gateways.github.gateway import GitHubGateway
from controller.gateways.kubernetes.gateway import KubernetesGateway
from hack.bench.figures import Figure, median, percentile
from hack.bench.rig import IMAGE, LABELS, PodWatch, Rig, gateways
from hack.bench.world import BOARD, TOKEN

ALLOWANCE_MS = 25.0
SENDERS = 16
FLOORS_OWNER = 1  # not the jobs': GitHub makes 180 runners a minute for one
_names = itertools.count(1)


async def latency(rig: Rig, samples: int) -> AsyncIterator[Figure]:
    """An idle system and one job at a time."""
    floor = await _floor_latency(rig, samples)
    took = []
    async with rig.running(), PodWatch(rig).open() as watch:
        await rig.finish_one(watch)  # which also fetches a token and finds the group
        for _ in range(samples):
            began, count = time.perf_counter(), len(watch.seen)
            await rig.deliver(0)
            await watch.until(count + 1)
            took.append((max(watch.seen.values()) - began) * 1000)
    low, high = median(floor), percentile(floor, 0.99)
    yield Figure("queued to pod, p50", median(took), "ms", 1.5 * low + ALLOWANCE_MS, low)
    yield Figure("queued to pod, p99", percentile(took, 0.99), "ms", 3 * high + ALLOWANCE_MS, high)


async def _floor_latency(rig: Rig, samples: int) -> list[float]:
    """One JIT request, Secret and pod, done directly."""
    took = []
    async with gateways(rig) as (github, cluster), PodWatch(rig).open() as watch:
        await _directly(rig, github, cluster, FLOORS_OWNER)
        await watch.until(1)
        for _ in range(samples):
            began, count = time.perf_counter(), len(watch.seen)
            await _directly(rig, github, cluster, FLOORS_OWNER)
            await watch.until(count + 1)
            took.append((max(watch.seen.values()) - began) * 1000)
        await _delete_all(cluster, watch)
    return took


async def burst(rig: Rig, jobs: int) -> AsyncIterator[Figure]:
    """Many jobs of many organizations at once, against the same requests at the same concurrency."""
    concurrency = rig.file.limits.provision_concurrency
    organizations = len(rig.world["accounts"])
    async with gateways(rig) as (github, cluster), PodWatch(rig).open() as watch:
        for number in range(organizations):
            await github.ensure_runner_group(rig.scope(number))
        places = asyncio.Semaphore(concurrency)

        async def one(number: int) -> None:
            async with places:
                await _directly(rig, github, cluster, number)

        began = time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(jobs)))
        await watch.until(jobs)
        floor = (max(watch.seen.values()) - began) * 1000
        await _delete_all(cluster, watch)
    async with rig.running(), PodWatch(rig).open() as watch:
        await rig.finish_one(watch)
        for number in range(organizations):  # tokens and groups, as the floor has them
            await rig.deliver(number)
        await watch.until(1 + organizations)
        began = time.perf_counter()
        await rig.deliver_all(jobs, SENDERS)
        await watch.until(1 + organizations + jobs)
        took = (max(watch.seen.values()) - began) * 1000
        yield Figure(f"burst of {jobs} jobs of {organizations} organizations", took, "ms", 1.5 * floor, floor)
        yield Figure("memory after the burst", rig.memory() / 2**20, "MiB", 250)
        count = await rig.metric("switchboard_workers_lock_seconds_count")
        held = await rig.metric("switchboard_workers_lock_seconds_sum")
        yield Figure("workers lock held, mean", held / max(count, 1) * 1000, "ms", 50)


async def turnaround(rig: Rig, samples: int) -> AsyncIterator[Figure]:
    """Every board is taken and more jobs wait; a pod ends, and the next one is created."""
    took = []
    boards = await _boards(rig)
    async with rig.running(), PodWatch(rig).open() as watch:
        await rig.finish_one(watch)
        await _succeed(rig, next(iter(watch.seen)))
        have = len(await _live_pods(rig))
        for number in range(boards - have + samples):
            await rig.deliver(number)
        await watch.until(1 + boards - have)
        for name in (await _live_pods(rig))[:samples]:
            began, count = time.perf_counter(), len(watch.seen)
            await _succeed(rig, name)
            await watch.until(count + 1)
            took.append((max(watch.seen.values()) - began) * 1000)
    yield Figure("board turnaround, p99", percentile(took, 0.99), "ms", 1000)


async def _directly(rig: Rig, github: GitHubGateway, cluster: KubernetesGateway, number: int) -> None:
    scope, name = rig.scope(number), f"floor-{next(_names):09d}"
    group = await github.ensure_runner_group(scope)
    jit = await github.create_jit_runner(scope, name, LABELS, group)
    order = PodOrder(
        name=name,
        instance="floor",
        image=IMAGE,
        pool=BOARD,
        board="none",
        entity=scope.entity,
        app_id=scope.app_id,
        installation_id=scope.installation_id,
        labels=LABELS,
    )
    await cluster.provision_runner(order, jit.config)


async def _delete_all(cluster: KubernetesGateway, watch: PodWatch) -> None:
    """The floor's pods hold no slot of the boards, but the watch would carry them along."""
    for name in watch.seen:
        await cluster.force_delete_pod(name)


async def _boards(rig: Rig) -> int:
    headers = {"authorization": f"Bearer {TOKEN}"}
    return len((await rig.http.get(f"{rig.world['cluster']}/api/v1/nodes", headers=headers)).json()["items"])


async def _live_pods(rig: Rig) -> list[str]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    path = f"{rig.world['cluster']}/api/v1/namespaces/default/pods"
    pods = (await rig.http.get(path, headers=headers)).json()["items"]
    return [p["metadata"]["name"] for p in pods if p["status"]["phase"] not in ("Succeeded", "Failed")]


async def _succeed(rig: Rig, name: str) -> None:
    path = f"{rig.world['cluster']}/api/v1/namespaces/default/pods/{name}/status"
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/merge-patch+json"}
    answer = await rig.http.patch(path, headers=headers, content=b'{"status": {"phase": "Succeeded"}}')
    answer.raise_for_status()
