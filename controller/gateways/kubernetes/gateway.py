"""The cluster as the core sees it: two cached views and a handful of calls. Implements `ports.Cluster`.

Every call has a deadline and raises only ClusterError and its children. Every call may be repeated: what is
there already, or gone already, is an answer and not an error.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

import structlog
from kubernetes.aio.client import ApiClient

from controller.domain.orders import PodOrder
from controller.domain.sightings import Node, NodeView, Pod, PodReport, PodView, Unknown
from controller.domain.workers import Adopted
from controller.errors import ClusterConflict, ClusterError, ClusterNotFound, ClusterUnavailable
from controller.gateways.kubernetes.changes import node_matters, pod_matters
from controller.gateways.kubernetes.parse import (
    ADVERTISED,
    EPOCH,
    Raw,
    main_container,
    parse_node,
    parse_pod,
    parse_time,
)
from controller.gateways.kubernetes.pod import (
    ENDING_REASON,
    JIT_KEY,
    adopted_fields,
    belongs_to,
    instance_labels,
    make_pod,
    runner_labels,
)
from controller.gateways.kubernetes.report import LOG_BYTES, LOG_LINES, make_report
from controller.gateways.kubernetes.watch import PAGE, Kind, WatchCache, WatchLimits
from controller.gateways.kubernetes.wire import MERGE_PATCH, METADATA_ONLY, Call, Wire, path
from controller.ports import Clock, CreatedPod, Random, Secret

CALL_DEADLINE = timedelta(seconds=10)

log = structlog.get_logger()


class KubernetesGateway:
    """One namespace of a cluster, and its nodes. Entering starts the two watches, leaving ends them."""

    def __init__(
        self,
        api_client: ApiClient,
        namespace: str,
        resource: str,
        board_label: str,
        instance: str,
        clock: Clock,
        *,
        on_change: Callable[[], None],
        rng: Random,
        deadline: timedelta = CALL_DEADLINE,
        limits: WatchLimits = WatchLimits(),  # noqa: B008 -- frozen
    ) -> None:
        self.board_label = board_label
        self._namespace = namespace
        self._resource = resource
        self._instance = instance
        self._wire = Wire(api_client, deadline)
        pods: Kind[Pod] = Kind("pods", self._path("pods"), self._parse_pod, pod_matters)
        nodes: Kind[Node] = Kind("nodes", path("nodes"), self._parse_node, node_matters)
        self._pods = WatchCache(self._wire, pods, clock, rng, limits, on_change)
        self._nodes = WatchCache(self._wire, nodes, clock, rng, limits, on_change)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(self._pods.run(), name="watch-pods"),
            asyncio.create_task(self._nodes.run(), name="watch-nodes"),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def synced(self) -> None:
        """Wait until both views have been listed once."""
        await self._pods.listed.wait()
        await self.nodes_synced()

    async def nodes_synced(self) -> None:
        """Wait until the nodes have been listed once; who only looks after nodes may have no right to pods."""
        await self._nodes.listed.wait()

    def pods(self) -> PodView | Unknown:
        """All pods of the namespace from the watch cache."""
        seen = self._pods.snapshot()
        return seen if isinstance(seen, Unknown) else PodView(seen, self._pods.version)

    def nodes(self) -> NodeView | Unknown:
        """All nodes from the watch cache."""
        seen = self._nodes.snapshot()
        return seen if isinstance(seen, Unknown) else NodeView(seen, self._nodes.version)

    def ours(self, pod: Pod) -> bool:
        """Whether this installation made the pod."""
        return belongs_to(pod.labels, self._instance)

    def identify(self, pod: Pod) -> Adopted | None:
        """The worker that a pod of ours says it is; None when it does not tell enough."""
        return adopted_fields(pod) if self.ours(pod) else None

    async def provision_runner(self, order: PodOrder, config: Secret) -> CreatedPod:
        """Make the Secret with the JIT config, the pod, and the pod the owner of the Secret."""
        await self.create_secret(order.name, config, runner_labels(order))
        created = await self.create_pod(make_pod(order))
        try:
            await self.own_secret(order.name, created.uid)
        except ClusterError as error:  # the pod runs all the same; a Secret that outlives it is swept
            log.warning("secret.not_owned", worker=order.name, error=str(error))
        return created

    async def create_secret(self, name: str, config: Secret, labels: Mapping[str, str]) -> None:
        """Create (or replace the data of) the Secret that carries the JIT config under key `jitconfig`."""
        data = {JIT_KEY: base64.b64encode(config.reveal().encode()).decode()}
        ours = {**labels, **instance_labels(self._instance)}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": name, "labels": ours},
            "data": data,
        }
        what = f"create secret {name}"
        try:
            await self._wire.fetch(Call(what, "POST", self._path("secrets"), body=body, confidential=True))
        except ClusterConflict:
            patch = {"metadata": {"labels": ours}, "data": data}
            await self._patch(f"replace secret {name}", self._path("secrets", name), patch, confidential=True)

    async def create_pod(self, manifest: Mapping[str, Any]) -> CreatedPod:
        """Create the pod; if one of that name exists already and is ours, answer with that one."""
        name = str(manifest["metadata"]["name"])
        call = Call(f"create pod {name}", "POST", self._path("pods"), body=manifest)
        try:
            pod = self._parse_pod(await self._wire.fetch(call))
        except ClusterConflict as conflict:
            there = await self.get_pod(name)
            if there is None or not belongs_to(there.labels, self._instance):
                raise
            if there.deleting_since is not None:
                raise ClusterConflict(f"{call.what}: one is being deleted", status=409) from conflict
            pod = there
        return CreatedPod(pod.uid, pod.resource_version)

    async def own_secret(self, name: str, pod_uid: str) -> None:
        """Make the pod of the same name the owner of the Secret, so that they go together."""
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": name,
            "uid": pod_uid,
            "controller": False,
            "blockOwnerDeletion": False,
        }
        patch = {"metadata": {"ownerReferences": [owner]}}
        await self._patch(f"own secret {name}", self._path("secrets", name), patch, confidential=True)

    async def end_pod(self, name: str, reason: str) -> None:
        """Set activeDeadlineSeconds to 1 and note the reason; gone already is fine."""
        patch = {
            "metadata": {"annotations": {ENDING_REASON: reason}},
            "spec": {"activeDeadlineSeconds": 1},
        }
        try:
            await self._patch(f"end pod {name}", self._path("pods", name), patch)
        except ClusterNotFound:
            return

    async def delete_pod(self, name: str) -> None:
        """Delete with the normal grace; gone already is fine."""
        await self._delete(f"delete pod {name}", self._path("pods", name), {})

    async def force_delete_pod(self, name: str) -> None:
        """Delete with zero grace, for pods whose kubelet is gone."""
        await self._delete(f"force-delete pod {name}", self._path("pods", name), {"gracePeriodSeconds": 0})

    async def get_pod(self, name: str) -> Pod | None:
        """Ask the API server directly; None means 404."""
        raw = await self._get_pod(name)
        return self._parse_pod(raw) if raw is not None else None

    async def list_secrets(self) -> Mapping[str, datetime]:
        """Our Secrets by name, with their creation times."""
        selector = ",".join(f"{key}={value}" for key, value in instance_labels(self._instance).items())
        query: dict[str, str | int] = {"labelSelector": selector, "limit": PAGE}
        found: dict[str, datetime] = {}
        while True:
            page = await self._wire.fetch(
                Call("list secrets", "GET", self._path("secrets"), query, accept=METADATA_ONLY)
            )
            for secret in page.get("items") or ():
                metadata = secret["metadata"]
                found[metadata["name"]] = parse_time(metadata.get("creationTimestamp")) or EPOCH
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            query["continue"] = more

    async def delete_secret(self, name: str) -> None:
        """Delete; gone already is fine."""
        await self._delete(f"delete secret {name}", self._path("secrets", name), {})

    async def offer_slot(self, node: str) -> None:
        """Write one slot into the node's capacity, and that it was us; a node that is gone is fine."""
        await self._patch_node(f"offer a slot on {node}", node, "1", self._instance)

    async def withdraw_slot(self, node: str) -> None:
        """Take the slot that was offered off the node again; a node that is gone is fine."""
        await self._patch_node(f"withdraw the slot of {node}", node, None, None)

    async def _patch_node(self, what: str, node: str, slots: str | None, who: str | None) -> None:
        patch = {
            "metadata": {"annotations": {ADVERTISED: who}},
            "status": {"capacity": {self._resource: slots}},
        }
        try:
            await self._patch(what, path("nodes", node, "status"), patch)
        except ClusterNotFound:
            return

    async def report(self, name: str) -> PodReport:
        """Collect exits, the last log lines (redacted by the caller) and events of a pod; says what is missing."""
        pod = await self._get_pod(name) or {}
        log, events = await asyncio.gather(self._log(name, pod), self._events(name, pod))
        return make_report(pod, log, events)

    async def _log(self, name: str, pod: Raw) -> bytes | None:
        """A pod that is gone or never started has no log; None: nobody answered for it."""
        container = main_container(pod)
        if container is None:
            return b""
        query: dict[str, str | int] = {"container": container, "tailLines": LOG_LINES}
        call = Call(f"log of pod {name}", "GET", self._path("pods", name, "log"), query)
        try:
            # One byte more than is kept, so that the cut is seen; limitBytes would cut the wrong end.
            return await self._wire.tail(call, LOG_BYTES + 1)
        except ClusterUnavailable:
            return None
        except ClusterError:
            return b""

    async def _events(self, name: str, pod: Raw) -> Sequence[Raw] | None:
        fields = {"involvedObject.kind": "Pod", "involvedObject.name": name}
        uid = (pod.get("metadata") or {}).get("uid")
        if uid:
            fields["involvedObject.uid"] = uid
        selector = ",".join(f"{key}={value}" for key, value in fields.items())
        query: dict[str, str | int] = {"fieldSelector": selector, "limit": PAGE}
        try:
            page = await self._wire.fetch(Call(f"events of pod {name}", "GET", self._path("events"), query))
        except ClusterUnavailable:
            return None
        except ClusterError:
            return ()
        return page.get("items") or ()

    async def _get_pod(self, name: str) -> Raw | None:
        try:
            return await self._wire.fetch(Call(f"get pod {name}", "GET", self._path("pods", name)))
        except ClusterNotFound:
            return None

    async def _patch(
        self, what: str, where: str, patch: Mapping[str, Any], *, confidential: bool = False
    ) -> None:
        await self._wire.fetch(
            Call(what, "PATCH", where, body=patch, content_type=MERGE_PATCH, confidential=confidential)
        )

    async def _delete(self, what: str, where: str, query: Mapping[str, str | int]) -> None:
        try:
            await self._wire.fetch(Call(what, "DELETE", where, query))
        except ClusterNotFound:
            return

    def _path(self, *parts: str) -> str:
        return path("namespaces", self._namespace, *parts)

    def _parse_pod(self, raw: Raw) -> Pod:
        return parse_pod(raw, self._resource)

    def _parse_node(self, raw: Raw) -> Node:
        return parse_node(raw, self._resource)
