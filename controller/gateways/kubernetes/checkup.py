"""What the doctor asks the API server: our rights, whether it takes a runner pod, the nodes. Nothing is made."""

from datetime import timedelta
from typing import Any

from kubernetes.aio.client import ApiClient

from controller.domain.checkup import Right, Seat
from controller.domain.orders import PodOrder
from controller.domain.sightings import Node
from controller.gateways.kubernetes.parse import parse_node
from controller.gateways.kubernetes.pod import make_pod
from controller.gateways.kubernetes.watch import PAGE
from controller.gateways.kubernetes.wire import Call, Wire, path

DEADLINE = timedelta(seconds=10)
COMPONENTS = "app.kubernetes.io/component in (controller,webhook,postgresql)"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class ClusterCheckup:
    """Questions that change nothing; ClusterError if they are not answered."""

    def __init__(self, api_client: ApiClient, namespace: str, resource: str) -> None:
        self._wire = Wire(api_client, DEADLINE)
        self._namespace = namespace
        self._resource = resource

    async def may(self, right: Right) -> bool:
        """Whether the API server grants a right."""
        attributes: dict[str, Any] = {"group": "", "verb": right.verb, "resource": right.resource}
        if right.subresource:
            attributes["subresource"] = right.subresource
        if right.namespaced:
            attributes["namespace"] = self._namespace
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._wire.fetch(Call(f"review of {right}", "POST", REVIEWS, body=body))
        return (answer.get("status") or {}).get("allowed") is True

    async def try_pod(self, order: PodOrder) -> None:
        """Have a runner pod judged by admission and validation without making it; ClusterError if it is refused."""
        where = path("namespaces", self._namespace, "pods")
        call = Call(f"pod of pool {order.pool}", "POST", where, {"dryRun": "All"}, make_pod(order))
        await self._wire.fetch(call)

    async def seats(self, namespace: str, release: str, board_label: str) -> list[Seat]:
        """Where the pods of a release of the chart run, but for those that have no node yet or are on their way out."""
        query = {"labelSelector": f"app.kubernetes.io/instance={release},{COMPONENTS}"}
        call = Call("list our own pods", "GET", path("namespaces", namespace, "pods"), query)
        pods = (await self._wire.fetch(call)).get("items") or ()
        staying = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        placed = [(pod["metadata"]["name"], pod["spec"]) for pod in staying if pod["spec"].get("nodeName")]
        return [Seat(name, spec["nodeName"], _keeps_off(spec, board_label)) for name, spec in placed]

    async def nodes(self) -> list[Node]:
        """All nodes, every page."""
        query: dict[str, str | int] = {"limit": PAGE}
        found: list[Node] = []
        while True:
            page = await self._wire.fetch(Call("list nodes", "GET", path("nodes"), query))
            found += [parse_node(raw, self._resource) for raw in page.get("items") or ()]
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            query["continue"] = more


def _keeps_off(spec: dict[str, Any], board_label: str) -> bool:
    """Whether every way that a pod's affinity leaves onto a node is closed to boards, as the chart writes it."""
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    closed = {"key": board_label, "operator": "DoesNotExist"}
    return bool(terms) and all(closed in (term.get("matchExpressions") or ()) for term in terms)
