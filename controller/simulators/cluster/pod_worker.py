"""One pod on one board, from the moment its kubelet takes it: pull, start, run, end, and the ways to be stopped.

A worker waits for time and for its program, never polls. While its kubelet is dead the container goes on
unseen: everything that would be written waits until the kubelet lives again.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from controller.simulators.cluster import pod_status
from controller.simulators.cluster.images import ImageError, Images
from controller.simulators.cluster.objects import PODS, Json, key_of, moment_of, uid_of
from controller.simulators.cluster.pod_env import ConfigError, resolve_env
from controller.simulators.cluster.pod_status import DEADLINE_EXCEEDED, POWER_LOST, STOPPED, Ending
from controller.simulators.cluster.programs import Container, Program, run_program

if TYPE_CHECKING:
    from controller.simulators.cluster.kubelet import Kubelet

FIRST_BACKOFF, LAST_BACKOFF = timedelta(seconds=10), timedelta(minutes=5)
SYNC = timedelta(seconds=2)
RETRY = timedelta(seconds=10)


class PodWorker:
    """Lives as long as the pod's container, or its try to have one."""

    def __init__(self, kubelet: "Kubelet", pod: Json) -> None:
        self._kubelet = kubelet
        self._clock = kubelet.clock
        self._key = key_of(pod)
        self.uid = uid_of(pod)
        self._stop = asyncio.Event()
        self._ending = STOPPED
        self._deadline: int | None = None
        self._alarm: asyncio.Task[None] | None = None
        self.container: Container | None = None

    async def run(self) -> None:
        """Take the pod through its life."""
        kubelet = self._kubelet
        await kubelet.alive.wait()
        pod = self._write(lambda fresh: pod_status.accept(fresh, self._clock.now(), kubelet.ip))
        if pod is None:
            return
        self.notice(pod)
        life = asyncio.create_task(self._live(pod), name=f"container {self._key[1]}")
        stopped = asyncio.create_task(self._stop.wait(), name=f"stop {self._key[1]}")
        try:
            await asyncio.wait({life, stopped}, return_when=asyncio.FIRST_COMPLETED)
            ending = life.result() if life.done() else await self._kill(life)
            await kubelet.alive.wait()
        finally:
            for task in (life, stopped, self._alarm):
                if task is not None:
                    task.cancel()
            await asyncio.gather(life, stopped, return_exceptions=True)
        self._finish(ending)

    def notice(self, pod: Json) -> None:
        """The pod was changed: it may be on its way out, or have another deadline."""
        if "deletionTimestamp" in pod["metadata"]:
            self._end(STOPPED)
        deadline = pod["spec"].get("activeDeadlineSeconds")
        started = pod["status"].get("startTime")
        if deadline is None or deadline == self._deadline or started is None:
            return
        self._deadline = deadline
        if self._alarm is not None:
            self._alarm.cancel()
        left = moment_of(started) + timedelta(seconds=deadline) - self._clock.now()
        name = f"deadline {self._key[1]}"
        self._alarm = self._kubelet.crew.later(max(timedelta(), left), self._pass_deadline, name)

    def lose_power(self) -> None:
        """End the container at once and without a trace."""
        self._end(POWER_LOST)

    def _pass_deadline(self) -> None:
        if self._kubelet.alive.is_set():
            self._end(DEADLINE_EXCEEDED)
        else:
            self._deadline = None  # armed again when the kubelet looks at the pod

    def _end(self, ending: Ending) -> None:
        if not self._stop.is_set():
            self._ending = ending
            self._stop.set()

    async def _kill(self, life: asyncio.Task[Ending]) -> Ending:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)
        if self._ending is not POWER_LOST:
            if self._ending is DEADLINE_EXCEEDED or self.container is not None:
                self._event("Killing", f"Stopping container {self._main()['name']}")
            await self._clock.sleep(self._kubelet.behaviour.stop_time)
        return self._ending

    async def _live(self, pod: Json) -> Ending:
        behaviour = self._kubelet.behaviour
        program = await self._pull(self._main(pod))
        env = await self._configure(pod)
        await self._clock.sleep(behaviour.start_time)
        await self._kubelet.alive.wait()
        container = Container(self._key[1], self._main(pod)["image"], self._kubelet.name, env, self._clock)
        self.container = self._kubelet.logs[self.uid] = container
        self._write(lambda fresh: pod_status.start(fresh, self._clock.now(), self._kubelet.pod_ip(fresh)))
        self._event("Started", "Container started")
        return Ending.by_itself(await run_program(program, container, behaviour))

    async def _pull(self, container: Json) -> Program:
        """Get the image, however often it takes."""
        kubelet, images = self._kubelet, self._kubelet.images
        image, backoff = container["image"], FIRST_BACKOFF
        if container["imagePullPolicy"] != "Always" and image in kubelet.pulled:
            self._event("Pulled", f'Container image "{image}" already present on machine')
            return images.program(image)
        while True:
            try:
                return await self._try_pull(image, container["imagePullPolicy"], images)
            except ImageError as error:
                await self._waiting(error.reason, str(error))
                self._event("Failed", error.event, warning=True)
                self._event("Failed", f"Error: {error.reason}", warning=True)
                if error.final:
                    await asyncio.Event().wait()
            await self._clock.sleep(SYNC)
            await self._waiting("ImagePullBackOff", f'Back-off pulling image "{image}"')
            self._event("BackOff", f'Back-off pulling image "{image}"')
            await self._clock.sleep(backoff)
            backoff = min(backoff * 2, LAST_BACKOFF)

    async def _try_pull(self, image: str, policy: str, images: Images) -> Program:
        images.check_name(image)
        images.check_policy(image, policy)
        self._event("Pulling", f'Pulling image "{image}"')
        await self._clock.sleep(self._kubelet.behaviour.pull_time)
        await self._kubelet.alive.wait()
        program = images.fetch(image, self._kubelet.behaviour.fail_to_pull)
        self._kubelet.pulled.add(image)
        self._event("Pulled", f'Successfully pulled image "{image}"')
        return program

    async def _configure(self, pod: Json) -> dict[str, str]:
        """Resolve the environment; a missing Secret may still come."""
        while True:
            try:
                return resolve_env(self._kubelet.store, pod)
            except ConfigError as error:
                await self._waiting("CreateContainerConfigError", str(error))
                self._event("Failed", f"Error: {error}", warning=True)
            await self._clock.sleep(RETRY)

    async def _waiting(self, reason: str, message: str) -> None:
        await self._kubelet.alive.wait()
        self._write(lambda fresh: pod_status.wait(fresh, reason, message))

    def _finish(self, ending: Ending) -> None:
        """Write the end, and let a pod go that was only waiting for it."""
        pod = self._write(lambda fresh: pod_status.end(fresh, self._clock.now(), ending))
        if pod is None:
            return
        if ending is DEADLINE_EXCEEDED:
            self._event("DeadlineExceeded", ending.pod_message)
        if "deletionTimestamp" in pod["metadata"]:
            self._kubelet.store.remove(PODS, self._key)

    def _write(self, mutate: Callable[[Json], None]) -> Json | None:
        pod = self._pod()
        return None if pod is None else self._kubelet.store.change(PODS, self._key, mutate)

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        pod = self._pod()
        if pod is not None:
            record = self._kubelet.recorder.warning if warning else self._kubelet.recorder.normal
            record(pod, reason, message, "kubelet", self._kubelet.name)

    def _pod(self) -> Json | None:
        """The pod, unless it is gone or another of the same name."""
        pod = self._kubelet.store.find(PODS, *self._key)
        return pod if pod is not None and uid_of(pod) == self.uid else None

    def _main(self, pod: Json | None = None) -> Json:
        found = pod or self._pod() or {"spec": {"containers": [{"name": "", "image": ""}]}}
        main: Json = found["spec"]["containers"][0]
        return main
