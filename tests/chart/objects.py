"""Where the API server keeps each kind, and the two kinds of the Prometheus operator, which it must be taught."""

from functools import partial

import httpx

from hack.cluster.programs import OPERATOR_KINDS, definition
from tests.chart.helm import NAMESPACE, Json
from tests.waiting import until

PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "PrometheusRule": "/apis/monitoring.coreos.com/v1/namespaces/{}/prometheusrules",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/{}/servicemonitors",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
}


def place_of(obj: Json) -> str:
    """The address of the collection that an object belongs to."""
    return PLACES[obj["kind"]].format(obj["metadata"].get("namespace", NAMESPACE))


async def teach_monitoring(client: httpx.AsyncClient) -> None:
    """Make the operator's kinds known, by its own definitions: an unknown field is a mistake as in any other kind."""
    for plural in OPERATOR_KINDS:
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        body = definition(plural).read_bytes()
        answer = await client.post(definitions, content=body, headers={"content-type": "application/yaml"})
        assert answer.status_code in (201, 409), answer.text
        await until(partial(_serves, client, f"/apis/monitoring.coreos.com/v1/{plural}"))


async def _serves(client: httpx.AsyncClient, place: str) -> bool:
    return (await client.get(place)).status_code == 200
