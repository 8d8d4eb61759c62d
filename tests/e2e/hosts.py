"""A node whose containers are processes of this machine: there a release's own pods run without an image.

The scheduler places them, Deployments and Jobs make and replace them; this does what a kubelet would do: init
containers first, files and environment from ConfigMaps and Secrets, the ServiceAccount's token, readiness, SIGTERM.
"""

import asyncio
import base64
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from hack.cluster.client import Cluster
from hack.cluster.control_plane import free_ports
from hack.cluster.processes import die_with_parent
from tests.contract.cluster.servers import client_of
from tests.e2e.access import with_token

Json = dict[str, Any]
LOOK = 0.2
BEAT = 3.0  # seconds; the node is given up after twenty
MERGE_PATCH = {"content-type": "application/merge-patch+json"}
ROOM = {"cpu": "8", "memory": "16Gi", "pods": "50"}
RUN = "import sys; from controller.cli import main; sys.exit(main())"


@dataclass(slots=True)
class Played:
    """A pod of the node, and what its processes wrote."""

    pod: Json
    log: Path
    port: int
    ready: bool = False
    leaving: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])

    @property
    def component(self) -> str:
        """Which part of the release it is."""
        return str(self.pod["metadata"]["labels"].get("app.kubernetes.io/component", ""))

    @property
    def image(self) -> str:
        """Which program it runs."""
        return str(self.pod["spec"]["containers"][0]["image"])

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def wrote(self, text: str) -> bool:
        """Whether its log holds this."""
        return text in self.log.read_text(encoding="utf-8", errors="replace")


class Host:
    """Plays the kubelet of one node; `programs` are the folders that images stand for."""

    def __init__(
        self,
        name: str,
        cluster: Cluster,
        client: httpx.AsyncClient,
        folder: Path,
        programs: Mapping[str, Path],
    ) -> None:
        self.name = name
        self.played: dict[str, Played] = {}  # by uid, also those that are gone
        self._cluster = cluster
        self._client = client
        self._folder = folder
        self._programs = programs

    def ready(self, component: str) -> list[Played]:
        """The pods that take requests."""
        return [
            each
            for each in self.played.values()
            if each.component == component and each.ready and not each.leaving.is_set()
        ]

    async def run(self) -> None:
        """Look after the node's pods until cancelled."""
        query = {"fieldSelector": f"spec.nodeName={self.name}"}
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            while True:
                answer = await self._ask("GET", "/api/v1/pods", params=query)
                for pod in answer.raise_for_status().json()["items"]:
                    uid = pod["metadata"]["uid"]
                    if uid not in self.played:
                        self.played[uid] = self._take(pod)
                        group.create_task(self._live(self.played[uid]))
                    if "deletionTimestamp" in pod["metadata"]:
                        self.played[uid].leaving.set()
                await asyncio.sleep(LOOK)

    async def _beat(self) -> None:
        while True:
            condition = {"type": "Ready", "status": "True", "reason": "Played", "lastHeartbeatTime": _now()}
            await self._status(f"/api/v1/nodes/{self.name}", {"conditions": [condition]})
            await asyncio.sleep(BEAT)

    def _take(self, pod: Json) -> Played:
        (port,) = free_ports(1)
        log = self._folder / f"{pod['metadata']['name']}.log"
        log.touch()
        return Played(pod, log, port)

    async def _live(self, played: Played) -> None:
        """A pod from its first container to its end."""
        folder = self._folder / played.name
        folder.mkdir()
        place = _path(played.pod)
        mounts = await self._mounts(played, folder)
        again = played.pod["spec"]["restartPolicy"] == "Always"
        for container in played.pod["spec"].get("initContainers", ()):
            while not played.leaving.is_set() and await self._run(played, container, mounts):
                pass
        code = 0
        while not played.leaving.is_set():
            await self._status(place, _running(played, ready=False))
            code = await self._run(played, played.pod["spec"]["containers"][0], mounts)
            if not again:
                await self._status(place, _ended(played, code))
                await played.leaving.wait()
        now = {"gracePeriodSeconds": 0, "preconditions": {"uid": played.pod["metadata"]["uid"]}}
        await self._ask("DELETE", place, json=now)

    async def _run(self, played: Played, container: Json, mounts: Mapping[str, Path]) -> int:
        """One run of a container; asked to go, it has the pod's grace period for that."""
        environment = await self._environment(played, container, mounts)
        tree = self._programs[container["image"]]
        with played.log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", RUN),
                *(_here(argument, mounts) for argument in container["args"]),
                cwd=tree,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tree), **environment},
                stdout=output,
                stderr=output,
                preexec_fn=die_with_parent,
            )
        watching = asyncio.create_task(self._watch(played, container))
        ending = asyncio.create_task(self._end(played, container, process))
        try:
            return await process.wait()
        finally:
            for task in (watching, ending):
                task.cancel()
            played.ready = False
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _watch(self, played: Played, container: Json) -> None:
        """Tell the API server once the readiness probe is answered."""
        probe = container.get("readinessProbe", {}).get("httpGet")
        async with httpx.AsyncClient(base_url=played.url) as client:
            while probe and not played.ready:
                with contextlib.suppress(httpx.TransportError):
                    played.ready = (await client.get(probe["path"])).status_code == 200
                await asyncio.sleep(LOOK)
        if played.ready:
            await self._status(_path(played.pod), _running(played, ready=True))

    async def _end(self, played: Played, container: Json, process: asyncio.subprocess.Process) -> None:
        await played.leaving.wait()
        stop = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        if stop:
            await (await asyncio.create_subprocess_exec(*stop)).wait()
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(played.pod["spec"]["terminationGracePeriodSeconds"])
        process.kill()

    async def _mounts(self, played: Played, folder: Path) -> dict[str, Path]:
        """The volumes as folders of this machine, by where a container would see them."""
        spec = played.pod["spec"]
        places = {each["name"]: each["mountPath"] for each in spec["containers"][0].get("volumeMounts", ())}
        mounts = {path: folder / name for name, path in places.items() if path.startswith("/etc/switchboard")}
        for volume in spec.get("volumes", ()):
            local = mounts.get(places.get(volume["name"], ""))
            if local is None:
                continue
            local.mkdir()
            for name, content in (await self._content(played, volume)).items():
                (local / name).write_bytes(content)
        settings = mounts["/etc/switchboard/config"] / "switchboard.yaml"
        content = yaml.safe_load(_here(settings.read_text(encoding="utf-8"), mounts))
        content["web"] = {"listen": f"127.0.0.1:{played.port}"}  # all pods share this machine's ports
        settings.write_text(yaml.safe_dump(content), encoding="utf-8")
        return mounts

    async def _content(self, played: Played, volume: Json) -> dict[str, bytes]:
        if "configMap" in volume:
            found = await self._get(played, "configmaps", volume["configMap"]["name"])
            return {name: text.encode() for name, text in found["data"].items()}
        if "secret" in volume:
            found = await self._get(played, "secrets", volume["secret"]["secretName"])
            return {name: base64.b64decode(text) for name, text in found["data"].items()}
        return {}

    async def _environment(
        self, played: Played, container: Json, mounts: Mapping[str, Path]
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in container.get("env", ()):
            if "value" in each:
                found[each["name"]] = _here(each["value"], mounts)
                continue
            wanted = each["valueFrom"]["secretKeyRef"]
            data = (await self._get(played, "secrets", wanted["name"])).get("data", {})
            if wanted["key"] in data or not wanted.get("optional"):
                found[each["name"]] = base64.b64decode(data[wanted["key"]]).decode()
        account = await self._get(played, "serviceaccounts", played.pod["spec"]["serviceAccountName"])
        mounted = account.get("automountServiceAccountToken", True)
        if played.pod["spec"].get("automountServiceAccountToken", mounted):
            found["KUBECONFIG"] = str(await self._token(played))
        return found

    async def _token(self, played: Played) -> Path:
        account = played.pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{played.pod['metadata']['namespace']}/serviceaccounts/{account}/token"
        answer = (await self._ask("POST", path, json={"spec": {}})).raise_for_status()
        file = self._folder / f"{played.name}.kubeconfig"
        return with_token(self._cluster.kubeconfig, answer.json()["status"]["token"], file)

    async def _get(self, played: Played, plural: str, name: str) -> Json:
        path = f"/api/v1/namespaces/{played.pod['metadata']['namespace']}/{plural}/{name}"
        found: Json = (await self._ask("GET", path)).raise_for_status().json()
        return found

    async def _status(self, path: str, status: Json) -> None:
        """Write a status; what is gone meanwhile needs none."""
        answer = await self._ask("PATCH", f"{path}/status", json={"status": status}, headers=MERGE_PATCH)
        assert answer.status_code in (200, 404), answer.text

    async def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request, again and again while the API server is too busy to answer."""
        while True:
            try:
                return await self._client.request(method, path, **more)
            except httpx.TransportError:
                await asyncio.sleep(LOOK)


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _here(text: str, mounts: Mapping[str, Path]) -> str:
    """A text in which the container's paths are this machine's."""
    for path, local in mounts.items():
        text = text.replace(path, str(local))
    return text


def _running(played: Played, *, ready: bool) -> Json:
    state = {"running": {"startedAt": _now()}}
    word = "True" if ready else "False"
    conditions = [{"type": kind, "status": word} for kind in ("Ready", "ContainersReady")]
    return {
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": [_container(played, state, ready)],
    }


def _ended(played: Played, code: int) -> Json:
    state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    phase = "Failed" if code else "Succeeded"
    return {"phase": phase, "containerStatuses": [_container(played, state, ready=False)]}


def _container(played: Played, state: Json, ready: bool) -> Json:
    name = played.pod["spec"]["containers"][0]["name"]
    shown = {"name": name, "image": played.image, "imageID": "", "restartCount": 0}
    return {**shown, "ready": ready, "state": state}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def a_host(
    cluster: Cluster, name: str, folder: Path, programs: Mapping[str, Path]
) -> AsyncIterator[Host]:
    """A node that is no board, for the length of the block."""
    async with client_of(cluster.kubeconfig) as client:
        node = {"metadata": {"name": name}, "status": {"capacity": ROOM, "allocatable": ROOM}}
        (await client.post("/api/v1/nodes", json=node)).raise_for_status()
        host = Host(name, cluster, client, folder, programs)
        try:
            async with asyncio.TaskGroup() as group:  # a node that fails fails the test at once
                task = group.create_task(host.run())
                yield host
                task.cancel()
        finally:
            await client.delete(f"/api/v1/nodes/{name}")
