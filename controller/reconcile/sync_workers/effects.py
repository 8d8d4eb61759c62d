"""What sync_workers does outside, after its commit. Each effect may fail or be repeated without harm."""

import asyncio
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, assert_never

import structlog

from controller.domain.changes import (
    AskForPod,
    CollectReport,
    DeletePod,
    DeleteRunner,
    Effect,
    EndPod,
    EndRunnerThenPod,
    ForceDeletePod,
)
from controller.domain.constants import CALL_DEADLINE
from controller.errors import ControllerError, LeadershipLost, RunnerBusy, StoreError
from controller.ports import Clock, Cluster, GitHub, Workers
from controller.telemetry.metrics import Metrics
from controller.telemetry.redaction import redact

log = structlog.get_logger()

AT_ONCE = 16


class Effects:
    """Carries effects out, concurrently, each with a deadline."""

    def __init__(
        self, github: GitHub, cluster: Cluster, workers: Workers, clock: Clock, metrics: Metrics
    ) -> None:
        self._github = github
        self._cluster = cluster
        self._workers = workers
        self._clock = clock
        self._metrics = metrics
        self._absent: set[str] = set()

    def take_absent(self) -> frozenset[str]:
        """The pods for which the API server answered 404 since the last call."""
        absent, self._absent = frozenset(self._absent), set()
        return absent

    async def carry_out(self, effects: Iterable[Effect], epoch: int) -> None:
        """Do them all; one that fails is logged and decided again next time."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(effect: Effect) -> None:
            async with places:
                try:
                    async with asyncio.timeout(CALL_DEADLINE.total_seconds()):
                        await self._do(effect, epoch)
                except LeadershipLost:
                    raise
                except (ControllerError, TimeoutError) as error:
                    why = redact(str(error)) or type(error).__name__
                    log.warning("effect.failed", effect=type(effect).__name__, name=effect.name, error=why)

        results = await asyncio.gather(*(one(effect) for effect in effects), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _do(self, effect: Effect, epoch: int) -> None:
        match effect:
            case EndRunnerThenPod():
                await self._kill(effect, epoch)
            case EndPod(name, reason, accepted):
                await self._end_pod(name, reason, accepted=accepted)
            case ForceDeletePod(name):
                await self._cluster.force_delete_pod(name)
            case DeletePod(name):
                await self._cluster.delete_pod(name)
            case DeleteRunner():
                await self._delete_leftover(effect)
            case CollectReport(name):
                await self._collect(name, epoch)
            case AskForPod(name):
                if await self._cluster.get_pod(name) is None:
                    self._absent.add(name)
            case _:
                assert_never(effect)

    async def _kill(self, kill: EndRunnerThenPod, epoch: int) -> None:
        """Delete the runner, end the pod, mark the worker failed. A busy runner is left alone."""
        runner_id = kill.runner_id
        if runner_id is None:
            found = await self._github.find_runner(kill.scope, kill.name)
            runner_id = found.id if found else None
        if runner_id is not None:
            try:
                await self._github.delete_runner(kill.scope, runner_id)
            except RunnerBusy:
                self._metrics.kills_refused_total.inc()
                log.info("worker.kill_refused", worker=kill.name, reason=kill.reason.value)
                await self._workers.drop_intent(kill.name, epoch, self._clock.now())
                return
        info = await self._report(kill.name) if kill.pod_seen else {}
        if kill.pod_seen:
            await self._end_pod(kill.name, kill.reason.value, accepted=kill.pod_accepted)
        now = self._clock.now()
        if await self._workers.fail(kill.name, kill.reason, info, own_fault=False, epoch=epoch, now=now):
            self._metrics.worker_failures_total.labels(kill.reason.value).inc()
            log.info("worker.killed", worker=kill.name, reason=kill.reason.value)

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

    async def _collect(self, name: str, epoch: int) -> None:
        info = await self._report(name)
        try:
            await self._workers.keep_report(name, info, epoch, self._clock.now())
        except LeadershipLost:
            raise
        except StoreError as error:
            log.warning("report.not_kept", worker=name, error=str(error))

    async def _report(self, name: str) -> dict[str, Any]:
        """What the pod tells, without secrets."""
        report = asdict(await self._cluster.report(name))
        return {**_redacted(report), "collected_at": self._clock.now().isoformat()}


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value).replace("\x00", "")
    if isinstance(value, dict):
        return {key: _redacted(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(each) for each in value]
    return value
