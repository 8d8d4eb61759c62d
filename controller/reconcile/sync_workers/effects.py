"""What sync_workers does outside, after its commit. Each effect may fail or be repeated without harm.

It is decided anew in every iteration, and a busy fleet has several a second: one that failed twice in a row is tried
again after a while, so that what GitHub or the cluster refuses does not become a flood of requests.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any, assert_never

import structlog

from controller.decide.pace import is_time
from controller.domain.changes import (
    AskForPod,
    CollectReport,
    DeletePod,
    DeleteRunner,
    Effect,
    EndPod,
    EndRunnerThenPod,
    ForceDeletePod,
    OwnSecret,
)
from controller.domain.constants import CALL_DEADLINE, FAILED_AGAIN
from controller.errors import (
    ClusterUnavailable,
    ControllerError,
    GitHubForbidden,
    GitHubNotFound,
    InstallationGone,
    RunnerBusy,
)
from controller.ports import Clock, Cluster, GitHub, Workers
from controller.reconcile.beside import Beside
from controller.telemetry.metrics import Metrics
from controller.telemetry.redaction import cleaned

log = structlog.get_logger()

AT_ONCE = 16


class Effects:
    """Carries effects out beside the loop, each with a deadline."""

    def __init__(
        self,
        github: GitHub,
        cluster: Cluster,
        workers: Workers,
        clock: Clock,
        metrics: Metrics,
        beside: Beside,
    ) -> None:
        self._github = github
        self._cluster = cluster
        self._workers = workers
        self._clock = clock
        self._metrics = metrics
        self._beside = beside
        self._places = asyncio.Semaphore(AT_ONCE)
        self._absent: set[str] = set()
        self._unreported: set[str] = set()
        self._failed: dict[str, tuple[int, datetime]] = {}  # how often in a row, and when last

    def take_absent(self) -> frozenset[str]:
        """The pods for which the API server answered 404 since the last call."""
        absent, self._absent = frozenset(self._absent), set()
        return absent

    def unreported(self, pods: Collection[str]) -> frozenset[str]:
        """Those of these pods whose report is not complete yet; the others are forgotten."""
        self._unreported.intersection_update(pods)
        return frozenset(self._unreported)

    def begin(self, effects: Iterable[Effect], epoch: int) -> list[str]:
        """Begin them, and name them; one that is under way since an earlier iteration is not begun twice."""
        wanted: dict[str, Effect] = {}
        for effect in effects:
            wanted.setdefault(f"{type(effect).__name__} {effect.name}", effect)
        self._failed = {name: each for name, each in self._failed.items() if name in wanted}
        begun = [name for name in wanted if not self._rests(name)]
        for name in begun:
            self._beside.start(name, partial(self._carry_out, name, wanted[name], epoch))
        return begun

    def _rests(self, name: str) -> bool:
        times, last = self._failed.get(name, (0, None))
        return times > 1 and not is_time(last, FAILED_AGAIN, self._clock.now())

    def _note_failure(self, name: str) -> None:
        times, _ = self._failed.get(name, (0, None))
        self._failed[name] = times + 1, self._clock.now()

    async def _carry_out(self, name: str, effect: Effect, epoch: int) -> bool:
        async with self._places:
            try:
                async with asyncio.timeout(CALL_DEADLINE.total_seconds()):
                    news = await self._do(effect, epoch)
            except TimeoutError:
                log.warning("effect.timed_out", effect=type(effect).__name__, name=effect.name)
                self._note_failure(name)
                return False
            except ControllerError:
                self._note_failure(name)
                raise
        self._failed.pop(name, None)
        return news

    async def _do(self, effect: Effect, epoch: int) -> bool:
        """Carry one out; True if the next iteration has something new to decide upon."""
        match effect:
            case EndRunnerThenPod():
                return await self._kill(effect, epoch)
            case EndPod(name, reason, accepted):
                await self._end_pod(name, reason, accepted=accepted)
            case ForceDeletePod(name):
                await self._cluster.force_delete_pod(name)
            case DeletePod(name):
                await self._cluster.delete_pod(name)
            case DeleteRunner():
                await self._delete_leftover(effect)
            case CollectReport(name, last):
                self._unreported.add(name)
                report = await self._report(name, last=last)
                await self._workers.keep_report(name, report, epoch, self._clock.now())
                if "collected_at" not in report:
                    raise ClusterUnavailable(f"pod {name} has not told everything yet")
                self._unreported.discard(name)
            case AskForPod(name):
                if await self._cluster.get_pod(name) is None:
                    self._absent.add(name)
                    return True
            case OwnSecret(name, pod_uid):
                await self._cluster.own_secret(name, pod_uid)
            case _:
                assert_never(effect)
        return False

    async def _kill(self, kill: EndRunnerThenPod, epoch: int) -> bool:
        """Delete the runner, end the pod or its Secret, mark the worker failed. A busy runner is left alone."""
        if kill.bound:  # GitHub is not even asked: it has been seen to delete runners at work
            return await self._leave_alone(kill, epoch)
        try:
            await self._delete_runner(kill)
        except RunnerBusy:
            self._metrics.kills_refused_total.inc()
            return await self._leave_alone(kill, epoch)
        except (GitHubNotFound, GitHubForbidden) as error:  # its repository may be gone too
            if kill.pod_accepted and not isinstance(error, InstallationGone):
                raise  # it may be busy; a pod that no kubelet has taken runs nothing
            log.info(
                "worker.runner_out_of_reach", worker=kill.name
            )  # and its board is not to be lost for that
        info = await self._report(kill.name, last=False) if kill.pod_seen else {}
        if kill.pod_seen:
            await self._end_pod(kill.name, kill.reason.value, accepted=kill.pod_accepted)
        else:
            await self._cluster.delete_secret(kill.name)
        now = self._clock.now()
        if await self._workers.fail(kill.name, kill.reason, info, own_fault=False, epoch=epoch, now=now):
            self._metrics.worker_failures_total.labels(kill.reason.value).inc()
            log.info("worker.killed", worker=kill.name, reason=kill.reason.value)
        return True

    async def _leave_alone(self, kill: EndRunnerThenPod, epoch: int) -> bool:
        log.info("worker.kill_refused", worker=kill.name, reason=kill.reason.value)
        await self._workers.drop_intent(kill.name, epoch, self._clock.now())
        return False

    async def _delete_runner(self, kill: EndRunnerThenPod) -> None:
        runner_id = kill.runner_id
        if runner_id is None:
            found = await self._github.find_runner(kill.scope, kill.name)
            runner_id = found.id if found else None
        if runner_id is not None:
            await self._github.delete_runner(kill.scope, runner_id)

    async def _end_pod(self, name: str, reason: str, *, accepted: bool) -> None:
        """A pod that no kubelet has taken would never notice a deadline: it is deleted."""
        if accepted:
            await self._cluster.end_pod(name, reason)
        else:
            await self._cluster.delete_pod(name)

    async def _delete_leftover(self, leftover: DeleteRunner) -> None:
        try:
            await self._github.delete_runner(leftover.scope, leftover.runner_id)
            log.info("runner.deleted", runner=leftover.name, entity=leftover.scope.entity.name)
        except RunnerBusy:
            log.info("runner.busy", runner=leftover.name)

    async def _report(self, name: str, *, last: bool) -> dict[str, Any]:
        """What the pod tells, without secrets; it is collected once nothing is missing, or when told so."""
        report = asdict(await self._cluster.report(name))
        missing = report.pop("missing")
        told = {part: each for part, each in report.items() if part not in missing}
        collected = {"collected_at": self._clock.now().isoformat()} if last or not missing else {}
        return {**cleaned(told), **collected}
